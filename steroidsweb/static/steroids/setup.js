// The set-up page renews itself while something is tried; the commands that somebody is typing stay.

import "./keys.js";

let isTyped = false;

document.addEventListener("input", (event) => {
    isTyped ||= Boolean(event.target.closest("[data-commands]"));
});
document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (isTyped) {
        event.detail.shouldSwap = false;
    }
});
