// The page of a dispute: choosing with keys, the text of the chosen option, the live preview, what was typed.

import { forget, keep, kept, signedInAgain } from "./drafts.js";
import { help, onKeys, press, undo } from "./keys.js";

const DEBOUNCE = 200;
const form = document.querySelector("form[data-ruling]");
const keys = {
    J: press("[data-next]"),
    K: press("[data-previous]"),
    V: press("[data-diff]"),
    X: press("[data-view]"),
    O: () => openCode(),
    N: () => focusOn("note"),
    S: press("[data-snooze]"),
    G: press("[data-judge]"),
    P: press("[data-mediator]"),
    M: press("[data-mine]"),
    U: undo,
    "?": help,
};

function focusOn(id) {
    const field = document.getElementById(id);
    field?.focus();
    field?.scrollIntoView({ block: "nearest" });
    return field !== null;
}

// --- The code, which a critical ruling wants opened ---------------------------------------------------------

const code = document.querySelector("details[data-code]");
const opened = document.querySelector("[data-opened]");

function openCode() {
    if (!code) {
        return false;
    }
    code.open = true;
    code.scrollIntoView({ block: "nearest" });
}

code?.addEventListener("toggle", () => {
    if (code.open && opened && !opened.checked) {
        opened.checked = true;
        opened.dispatchEvent(new Event("input", { bubbles: true }));
    }
});
opened?.addEventListener("change", () => opened.checked && openCode());

// --- Ruling -------------------------------------------------------------------------------------------------

if (form) {
    const options = [...form.querySelectorAll("[name=option]")];
    const text = form.elements.text;
    const preview = form.querySelector("[data-preview]"); // none where no option reaches the coder
    const restored = form.querySelector("[data-restored]");
    const draftKey = form.dataset.keep;
    const drafts = new Map(); // what was typed for each option, so that changing one's mind loses nothing
    let chosen = null;
    let timer = 0;
    let request = null;

    function choose(option, keepText) {
        if (chosen) {
            drafts.set(chosen.value, text.value);
        }
        chosen = option;
        if (!keepText) {
            text.value = drafts.get(option.value) ?? option.dataset.text;
        }
        text.required = "needsText" in option.dataset;
        text.placeholder = option.dataset.needsText ?? "";
        for (const place of document.querySelectorAll("[data-letter]:not(input)")) {
            place.textContent = option.dataset.letter;
        }
        form.querySelector("[data-filled]").hidden = !option.dataset.text;
        ask();
    }

    function ask() {
        clearTimeout(timer);
        if (preview) {
            timer = setTimeout(show, DEBOUNCE);
        }
    }

    async function show() {
        request?.abort();
        request = new AbortController();
        try {
            const answer = await fetch(form.dataset.previewUrl, {
                method: "POST",
                body: new FormData(form),
                headers: { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value, Accept: "application/json" },
                signal: request.signal,
            });
            if (answer.status === 401) {
                fill(["You are signed out. What you typed is kept: reload the page to sign in and go on."]);
                return;
            }
            const { lines } = await answer.json();
            fill(lines.length ? lines : [`Nothing of this reaches the ${form.dataset.coder}'s prompt.`]);
        } catch (error) {
            if (error.name !== "AbortError") {
                fill(["The preview cannot be reached just now. Ruling works without it."]);
            }
        }
    }

    function fill(lines) {
        let own = false;
        const rows = lines.map((line) => {
            const row = document.createElement("p");
            if (/^ {3}(About|Ruling|Why|Constraints|Precedent|Do): /.test(line)) {
                own = line.startsWith("   Ruling: ");
            }
            row.textContent = line;
            row.classList.toggle("is-own", own);
            return row;
        });
        form.querySelector("[data-lines]").replaceChildren(...rows);
        preview.hidden = false;
    }

    // --- What was typed before --------------------------------------------------------------------------

    function remember() {
        if (!chosen) {
            return;
        }
        drafts.set(chosen.value, text.value);
        keep(draftKey, {
            option: chosen.value,
            texts: [...drafts].filter(([option, words]) => words !== textOf(option)),
            rationale: form.elements.rationale.value,
            constraints: form.elements.constraints.value,
            cites: cited().filter((each) => each.checked).map((each) => each.value),
            expectsChange: form.elements.expects_change.checked,
        });
    }

    function textOf(option) {
        return options.find((each) => each.value === option)?.dataset.text ?? "";
    }

    /** The precedents that may be named. */
    function cited() {
        return [...form.querySelectorAll("[name=cites]")];
    }

    /** Tick these precedents, where they still are some. */
    function cite(refs) {
        for (const each of cited()) {
            each.checked = refs.includes(each.value);
        }
    }

    /** Put back what an earlier visit left; true where there was something. */
    function restore() {
        const isBack = signedInAgain(); // the session had ended, and what was sent did not arrive
        const draft = kept(draftKey);
        const option = draft && options.find((each) => each.value === draft.option);
        const isTyped = draft && (draft.texts.length || draft.rationale || draft.constraints || draft.cites?.length);
        if (!option || !(isTyped || isBack) || "typed" in form.dataset) {
            return false;
        }
        for (const [key, words] of draft.texts) {
            drafts.set(key, words);
        }
        form.elements.rationale.value = draft.rationale;
        form.elements.constraints.value = draft.constraints;
        form.elements.constraints.closest("details").open = Boolean(draft.constraints);
        form.elements.expects_change.checked = draft.expectsChange;
        cite(draft.cites ?? []);
        restored.hidden = false;
        if (isBack) {
            restored.querySelector("[data-why]").textContent = "Signed in again; your text is here.";
        }
        const wanted = options.find((each) => each.checked) ?? option; // the address may ask for another one
        wanted.checked = true;
        choose(wanted, false);
        return true;
    }

    form.querySelector("[data-forget]").addEventListener("click", () => {
        forget(draftKey);
        drafts.clear();
        form.elements.rationale.value = form.elements.constraints.value = "";
        cite([]);
        text.value = chosen ? chosen.dataset.text : "";
        restored.hidden = true;
        ask();
    });

    // --- Keys and events --------------------------------------------------------------------------------

    for (const option of options) {
        option.addEventListener("change", () => choose(option, false));
        keys[option.dataset.letter] = () => {
            option.focus();
            option.click();
            if (text.required && !option.dataset.text) {
                text.focus(); // own words: there is nothing to do but write
            } else if ("atOnce" in form.dataset) {
                form.requestSubmit();
            }
        };
    }
    keys.E = () => {
        if (!chosen) {
            return false;
        }
        text.focus();
    };
    form.addEventListener("input", (event) => {
        if (chosen && event.target.name !== "option") {
            remember();
            ask();
        }
    });
    form.addEventListener("submit", () => {
        form.querySelector("[data-rule]").disabled = true;
        remember();
    });
    window.addEventListener("pageshow", () => (form.querySelector("[data-rule]").disabled = false));
    document.addEventListener("keydown", (event) => {
        const isOurs = event.target.form === form || !event.target.closest("textarea, input, select");
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
            event.preventDefault();
            (isOurs ? form : event.target.form)?.requestSubmit();
        }
    });

    if (!restore()) {
        const given = options.find((option) => option.checked);
        if (given) {
            choose(given, true); // after a refusal, or restored by the browser: the text stays as it was typed
        }
    }
}

// --- Arriving to write --------------------------------------------------------------------------------------

/** Whoever pressed a key elsewhere in order to write here goes on writing, from the first letter on. */
function goOnWriting(field) {
    const typed = window.takeTyped?.() ?? "";
    field?.focus();
    field?.scrollIntoView({ block: "nearest" });
    if (field?.setSelectionRange) {
        field.setSelectionRange(field.value.length, field.value.length);
        if (typed) {
            field.setRangeText(typed, field.value.length, field.value.length, "end");
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }
    }
}

if (location.hash === "#note") {
    goOnWriting(document.getElementById("note"));
} else if (new URLSearchParams(location.search).has("choose")) {
    goOnWriting(form?.querySelector("[name=option]:checked") ? form.elements.text : null);
}
onKeys(keys);
