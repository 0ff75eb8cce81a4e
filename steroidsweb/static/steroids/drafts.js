// What was typed and not sent yet outlives a reload, a closed tab and a refusal: it is kept in this browser.

const DAYS = 14;
const PREFIX = "steroids:";

function name(key) {
    const user = document.querySelector("[data-user]")?.dataset.user ?? "";
    return `${PREFIX}${user}:${key}`;
}

/** Remember the value under the key; nothing happens where the browser keeps nothing. */
export function keep(key, value) {
    try {
        localStorage.setItem(name(key), JSON.stringify({ at: Date.now(), value }));
    } catch {
        // A full or forbidden store: the page works without.
    }
}

/** What was remembered, or null. */
export function kept(key) {
    try {
        return JSON.parse(localStorage.getItem(name(key)))?.value ?? null;
    } catch {
        return null;
    }
}

export function forget(key) {
    try {
        localStorage.removeItem(name(key));
    } catch {
        // As above.
    }
}

/** Whether the person has just signed in again, in whichever way; sent.js notes it on the pages of the sign-in. */
export function signedInAgain() {
    try {
        return sessionStorage.getItem("steroids.signed-out") !== null;
    } catch {
        return false;
    }
}

function sweep() {
    const limit = Date.now() - DAYS * 24 * 60 * 60 * 1000;
    for (const key of Object.keys(localStorage).filter((each) => each.startsWith(PREFIX))) {
        try {
            if (JSON.parse(localStorage.getItem(key)).at < limit) {
                localStorage.removeItem(key);
            }
        } catch {
            localStorage.removeItem(key);
        }
    }
}

try {
    sweep();
} catch {
    // No store at all.
}

for (const field of document.querySelectorAll("textarea[data-draft]")) {
    const key = field.dataset.draft;
    const draft = kept(key);
    if (draft?.isSent && location.hash.startsWith("#comment-")) {
        forget(key); // it was said, and the address leads to it
    } else if (!field.value && draft?.text) {
        field.value = draft.text;
        field.closest("details")?.setAttribute("open", "");
    }
    field.addEventListener("input", () => (field.value ? keep(key, { text: field.value }) : forget(key)));
    // It may not arrive: the session may have ended, or the server be away.
    field.form.addEventListener("submit", () => keep(key, { text: field.value, isSent: true }));
}
