// The pages of a bulk act: it is sent once, and one key takes it back.

import { help, onKeys, undo } from "./keys.js";

onKeys({ U: undo, "?": help });

const button = document.querySelector("form[data-once] .button-primary"); // none where nothing can be done
if (button) {
    button.form.addEventListener("submit", () => (button.disabled = true));
    window.addEventListener("pageshow", () => (button.disabled = false));
}
