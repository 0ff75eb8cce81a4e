// The pages of a bulk act: it is sent once, and one key takes it back.

import { help, onKeys, undo } from "./keys.js";

onKeys({ U: undo, "?": help });

for (const form of document.querySelectorAll("form[data-once]")) {
    form.addEventListener("submit", () => (form.querySelector(".button-primary").disabled = true));
    window.addEventListener("pageshow", () => (form.querySelector(".button-primary").disabled = false));
}
