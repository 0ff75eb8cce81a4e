// Keys, the toast and the list of keys: what the pages of the queue share.

const FIELD = "textarea, select, input:not([type=radio], [type=checkbox]), [contenteditable]";

export function inField(event) {
    return event.target.closest(FIELD) !== null;
}

/** Call the function of the pressed key, outside of fields. A function that returns false did nothing. */
export function onKeys(actions) {
    document.addEventListener("keydown", (event) => {
        const busy = event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey;
        if (busy || inField(event) || document.querySelector("dialog[open]")) {
            return;
        }
        const action = actions[event.key.length === 1 ? event.key.toUpperCase() : event.key];
        if (action && action(event) !== false) {
            event.preventDefault();
        }
    });
}

/** Follow the link or press the button; nothing happens where the page has none. */
export function press(selector) {
    return () => {
        const target = document.querySelector(selector);
        target?.click();
        return target !== null;
    };
}

export function undo() {
    const form = document.querySelector("form[data-undo]");
    form?.requestSubmit();
    return form !== null;
}

export function help() {
    document.getElementById("keys").showModal();
}

document.addEventListener("click", (event) => {
    event.target.closest("[data-close]")?.closest("[data-toast]").remove();
    if (event.target.closest("[data-help]")) {
        help();
    }
});

document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && inField(event)) {
        event.target.blur();
    }
});
