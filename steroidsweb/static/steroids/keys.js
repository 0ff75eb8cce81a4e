// Keys, the toast and the list of keys: what the pages of the queue share.

const FIELD = "textarea, select, input:not([type=radio], [type=checkbox]), [contenteditable]";

const QUIET = 1000; // milliseconds
const LULL = 300; // milliseconds, longer than between two keys of somebody who types
const SAID = 5000; // milliseconds that our own words stay
const TYPED = "steroids.typed"; // arrival.js takes it
const LETTER = /^[A-Z0-9]$/;
const MOVES = /^[HJKL]$/;
let leaving = false;
let said = null;

export function inField(event) {
    return event.target.closest(FIELD) !== null;
}

/**
 * Call the function of the pressed key, outside of fields. A function that returns false did nothing.
 * For a moment after arrival letters that do more than move are no commands: they were meant for the page before,
 * and so is what is typed on from there without a pause. Until then their hints are faint, and whoever pressed
 * one is told.
 */
export function onKeys(actions) {
    let quietUntil = 0;
    let typingUntil = 0; // in the middle of a word no letter moves either
    let early = "";
    let timer = 0;

    function quiet(milliseconds) {
        quietUntil = Math.max(quietUntil, performance.now() + milliseconds);
        delete document.documentElement.dataset.keys;
        clearTimeout(timer);
        timer = setTimeout(listen, quietUntil - performance.now());
    }

    function listen() {
        document.documentElement.dataset.keys = "on";
        if (early.length > 1 || early in actions) {
            const typed = early.length > 1 ? "What you typed" : early;
            say(`${typed} did nothing, because this page had only just arrived. Its keys count now.`);
        }
        early = "";
    }

    quiet(QUIET);
    window.addEventListener("pageshow", (event) => event.persisted && quiet(QUIET));
    document.addEventListener("keydown", (event) => {
        const busy = event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey;
        if (busy || leaving || inField(event) || document.querySelector("dialog[open]")) {
            return;
        }
        const now = performance.now();
        const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
        if (now < quietUntil && LETTER.test(key) && (now < typingUntil || !MOVES.test(key))) {
            early += key;
            typingUntil = now + LULL;
            quiet(LULL);
            return;
        }
        const action = actions[key];
        if (action && action(event) !== false) {
            event.preventDefault();
        } else if (action && LETTER.test(key)) {
            say(`${key} has nothing to do here.`);
        }
    });
}

/** Follow the link or press the button; what it unfolds is the next stop. Nothing happens where the page has none. */
export function press(selector) {
    return () => {
        const target = document.querySelector(selector);
        target?.click();
        if (target?.matches("summary")) {
            target.focus();
        }
        return target !== null;
    };
}

/**
 * Go to a page whose field the person writes in next: what is typed until it stands there comes along.
 * No browser keeps keys that are pressed while it puts one page in place of another: who is to write own
 * words is let go in a pause; who finds the words there goes at once, unless more is typed in that moment.
 */
export function goToWrite(address, hasOwnWords) {
    const url = new URL(address, location.href);
    const shown = document.createElement("output");
    let typed = "";
    let timer = 0;

    function leaveAfter(pause) {
        clearTimeout(timer);
        timer = setTimeout(() => location.assign(url), pause);
    }

    function stay() {
        clearTimeout(timer);
        leaving = false;
        document.removeEventListener("keydown", collect, true);
        sessionStorage.removeItem(TYPED);
        shown.remove();
    }

    function collect(event) {
        if (event.key === "Escape") {
            stay();
        } else if (!event.ctrlKey && !event.metaKey && !event.altKey) {
            if (event.key.length === 1 || event.key === "Backspace") {
                typed = event.key === "Backspace" ? typed.slice(0, -1) : typed + event.key;
                sessionStorage.setItem(TYPED, JSON.stringify({ path: url.pathname, typed }));
                shown.textContent = typed;
                event.preventDefault();
            }
            leaveAfter(LULL);
        }
    }

    leaving = true;
    sessionStorage.removeItem(TYPED);
    shown.className = "typed";
    document.body.append(shown);
    document.addEventListener("keydown", collect, true);
    window.addEventListener("pageshow", (event) => event.persisted && stay(), { once: true });
    leaveAfter(hasOwnWords ? LULL : 0);
}

/** Undo the last ruling. Where it was made on another page, which may long be out of mind, ask first. */
export function undo() {
    const form = document.querySelector("form[data-undo]");
    if (form === null) {
        say("There is nothing to undo here. In the queue, U undoes your last ruling until a prompt uses it.");
    } else if (form.dataset.undo) {
        askToUndo(form);
    } else {
        form.requestSubmit();
    }
}

/** Say something beside the server's messages, of which one may offer to undo; instead of what was said before. */
function say(words) {
    const toast = document.createElement("div");
    const text = document.createElement("p");
    toast.className = "toast";
    toast.dataset.toast = "";
    text.textContent = words;
    toast.append(text);
    said?.remove();
    said = toast;
    document.querySelector(".toasts")?.append(toast);
    setTimeout(() => toast.remove(), SAID);
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

document.addEventListener("paste", (event) => {
    const { value, maxLength, selectionStart, selectionEnd } = event.target;
    const pasted = event.clipboardData?.getData("text") ?? "";
    if (maxLength > 0 && value.length - (selectionEnd - selectionStart) + pasted.length > maxLength) {
        say(`Only ${maxLength.toLocaleString("en")} characters fit here: the end of what you pasted is left out.`);
    }
});

document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && inField(event)) {
        event.target.blur();
    }
});
