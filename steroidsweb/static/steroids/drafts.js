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
    if (!field.value && kept(key)) {
        field.value = kept(key);
        field.closest("details")?.setAttribute("open", "");
    }
    field.addEventListener("input", () => (field.value ? keep(key, field.value) : forget(key)));
    // A refusal shows the text again; what was said is on the page.
    field.form.addEventListener("submit", () => forget(key));
}
