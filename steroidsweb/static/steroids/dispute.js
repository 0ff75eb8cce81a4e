// The page of a dispute: choosing with keys, the text of the chosen option, the live preview.

import { help, onKeys, press, undo } from "./keys.js";

const DEBOUNCE = 200;
const form = document.querySelector("form[data-ruling]");
const keys = {
    J: press("[data-next]"),
    K: press("[data-previous]"),
    V: press("[data-diff]"),
    U: undo,
    "?": help,
};

if (form) {
    const options = [...form.querySelectorAll("[name=option]")];
    const text = form.elements.text;
    const preview = form.querySelector("[data-preview]");
    const drafts = new Map(); // what was typed for each option, so that changing one's mind loses nothing
    let chosen = null;
    let timer = 0;
    let request = null;

    function choose(option, keep) {
        if (chosen) {
            drafts.set(chosen, text.value);
        }
        chosen = option;
        if (!keep) {
            text.value = drafts.get(option) ?? option.dataset.text;
        }
        text.required = "needsText" in option.dataset;
        text.placeholder = text.required ? "What the coder must do" : "";
        for (const place of document.querySelectorAll("[data-letter]:not(input)")) {
            place.textContent = option.dataset.letter;
        }
        form.querySelector("[data-filled]").hidden = !option.dataset.text;
        ask();
    }

    function ask() {
        clearTimeout(timer);
        timer = setTimeout(show, DEBOUNCE);
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
            const { lines } = await answer.json();
            fill(lines.length ? lines : ["Nothing of this reaches the coder's prompt."]);
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
            if (/^ {3}(About|Ruling|Why|Constraints|Do): /.test(line)) {
                own = line.startsWith("   Ruling: ");
            }
            row.textContent = line;
            row.classList.toggle("is-own", own);
            return row;
        });
        form.querySelector("[data-lines]").replaceChildren(...rows);
        preview.hidden = false;
    }

    for (const option of options) {
        option.addEventListener("change", () => choose(option, false));
        keys[option.dataset.letter] = () => {
            option.focus();
            option.click();
            if (text.required) {
                text.focus(); // own words start empty: there is nothing to do but write
            }
        };
    }
    keys.E = () => {
        if (!chosen) {
            return false;
        }
        text.focus();
    };
    form.addEventListener("input", (event) => event.target !== chosen && chosen && ask());
    form.addEventListener("submit", () => (form.querySelector("[data-rule]").disabled = true));
    window.addEventListener("pageshow", () => (form.querySelector("[data-rule]").disabled = false));
    document.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
            event.preventDefault();
            form.requestSubmit();
        }
    });

    const given = options.find((option) => option.checked);
    if (given) {
        choose(given, true); // after a refusal, or restored by the browser: the text stays as it was typed
    }
}

onKeys(keys);
