// Keys, the toast and the list of keys: what the pages of the queue share.

const FIELD = "textarea, select, input:not([type=radio], [type=checkbox]), [contenteditable]";

const QUIET = 1000; // milliseconds
const MOVES = /^[hjkl]$/i;
let leaving = false;

export function inField(event) {
    return event.target.closest(FIELD) !== null;
}

/**
 * Call the function of the pressed key, outside of fields. A function that returns false did nothing.
 * For a moment after arrival letters that do more than move are no commands: they were meant for the page before.
 */
export function onKeys(actions) {
    let arrived = performance.now();
    setTimeout(() => (document.documentElement.dataset.keys = "on"), QUIET);
    window.addEventListener("pageshow", (event) => event.persisted && (arrived = performance.now()));
    document.addEventListener("keydown", (event) => {
        const busy = event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey;
        if (busy || leaving || inField(event) || document.querySelector("dialog[open]")) {
            return;
        }
        if (performance.now() - arrived < QUIET && /^[a-z0-9]$/i.test(event.key) && !MOVES.test(event.key)) {
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

/** Go to a page whose field the person writes in next: what is typed until it stands there comes along. */
export function goToWrite(address) {
    const url = new URL(address, location.href);
    let typed = "";
    leaving = true;
    document.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            leaving = false; // the browser stays here
        }
        if (!leaving || event.ctrlKey || event.metaKey || event.altKey) {
            return;
        }
        if (event.key.length === 1 || event.key === "Backspace") {
            typed = event.key === "Backspace" ? typed.slice(0, -1) : typed + event.key;
            sessionStorage.setItem("steroids.typed", JSON.stringify({ path: url.pathname, typed }));
            event.preventDefault();
        }
    });
    sessionStorage.removeItem("steroids.typed");
    location.assign(url);
}

window.addEventListener("pageshow", (event) => event.persisted && (leaving = false));

/** Undo the last ruling. Where it was made on another page, which may long be out of mind, ask first. */
export function undo() {
    const form = document.querySelector("form[data-undo]");
    if (form?.dataset.undo) {
        askToUndo(form);
    } else {
        form?.requestSubmit();
    }
    return form !== null;
}

function askToUndo(form) {
    const dialog = document.createElement("dialog");
    dialog.className = "keys";
    dialog.innerHTML =
        '<form method="dialog"><h2 id="undo-title">Undo this ruling?</h2><p></p>' +
        '<div class="dialog-actions"><button class="button button-primary" value="undo">Undo</button>' +
        '<button class="button">Keep it</button></div></form>';
    dialog.setAttribute("aria-labelledby", "undo-title");
    dialog.querySelector("p").textContent = form.dataset.undo;
    dialog.addEventListener("close", () => {
        dialog.remove();
        if (dialog.returnValue === "undo") {
            form.requestSubmit();
        }
    });
    document.body.append(dialog);
    dialog.showModal();
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
