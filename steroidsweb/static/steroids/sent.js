// On every page: what somebody typed into a form comes back if it did not arrive, because the session had ended or
// the page refused it. It is kept in this tab from the moment it is sent until a page says that it arrived, and
// only for the same user. Fields with a draft of their own, passwords and files are left out. Not a module, because
// unfold loads it as a plain script in the head. And no form is sent twice by a second press on a slow line.

"use strict";

(() => {
    const KEY = "steroids.sent";
    const SIGNED_OUT = "steroids.signed-out";
    const TYPED = 'textarea, input:not([type="checkbox"], [type="radio"])';
    const LEFT_OUT = '[data-draft], [type="hidden"], [type="submit"], [type="password"], [type="file"], button, fieldset';

    const UNDER_WAY = 10_000; // milliseconds; whoever sees nothing for so long may press again
    let underWay = new WeakSet();

    const user = () => document.querySelector("[data-user]")?.dataset.user ?? "";
    const path = (form) => new URL(form.getAttribute("action") ?? "", location.href).pathname;
    const hasOwnDraft = (form) => "keep" in form.dataset;
    const posts = () => [...document.forms].filter((form) => form.method === "post" && !hasOwnDraft(form));
    const fields = (form) => [...form.elements].filter((each) => each.name && !each.matches(LEFT_OUT));

    /** The form among those with the same address, by its place on the page. */
    const same = (form) => posts().filter((other) => path(other) === path(form));

    function read() {
        try {
            return JSON.parse(sessionStorage.getItem(KEY));
        } catch {
            return null; // the browser keeps nothing
        }
    }

    function write(sent) {
        try {
            sessionStorage.setItem(KEY, JSON.stringify(sent));
        } catch {
            forget(); // too large, or the browser keeps nothing: the page works without
        }
    }

    function forget() {
        try {
            sessionStorage.removeItem(KEY);
        } catch {
            // As above.
        }
    }

    function valueOf(field) {
        if (field.matches('[type="checkbox"], [type="radio"]')) {
            return field.checked;
        }
        return field.matches("select") ? [...field.selectedOptions].map(({ value, text }) => ({ value, text })) : field.value;
    }

    function remember({ target: form }) {
        const isTyped = fields(form).some((field) => field.matches(TYPED) && field.value !== field.defaultValue);
        if (!user() || form.method !== "post" || hasOwnDraft(form) || !isTyped) {
            return;
        }
        const values = fields(form).map((field) => [field.name, valueOf(field)]);
        write({ user: user(), path: path(form), place: same(form).indexOf(form), values });
    }

    function choose(select, chosen) {
        for (const { value, text } of chosen) {
            if (![...select.options].some((option) => option.value === value)) {
                select.add(new Option(text, value)); // a search in the page before had found it
            }
        }
        for (const option of select.options) {
            option.selected = chosen.some(({ value }) => value === option.value);
        }
    }

    function put(field, value) {
        if (field.matches('[type="checkbox"], [type="radio"]')) {
            field.checked = value;
        } else if (field.matches("select")) {
            choose(field, value);
        } else {
            field.value = value;
        }
        field.closest("details")?.setAttribute("open", "");
        for (const kind of ["input", "change"]) {
            field.dispatchEvent(new Event(kind, { bubbles: true }));
        }
    }

    function say(form, isUnsure) {
        const note = document.createElement("p");
        note.className = "restored";
        note.append(`What you sent ${isUnsure ? "may not have arrived" : "did not arrive"}. It is here again. `);
        const discard = document.createElement("button");
        Object.assign(discard, { type: "reset", className: "button button-small", textContent: "Discard it" });
        note.append(discard);
        form.prepend(note);
        form.addEventListener("reset", () => note.remove());
    }

    /** Put back what was sent from this form; fields of one name follow each other. */
    function restore(form, { values, isUnsure }) {
        for (const field of fields(form)) {
            const at = values.findIndex(([name]) => name === field.name);
            if (at >= 0) {
                const [[, value]] = values.splice(at, 1);
                if (JSON.stringify(value) !== JSON.stringify(valueOf(field))) {
                    put(field, value);
                }
            }
        }
        say(form, isUnsure);
    }

    /** Note that the person is signing in again, until the first page of theirs has been told (drafts.js). */
    function noteSignIn() {
        try {
            if (document.body.classList.contains("login")) {
                sessionStorage.setItem(SIGNED_OUT, "yes");
                document.querySelector("[data-kept]")?.removeAttribute("hidden");
            } else if (user()) {
                sessionStorage.removeItem(SIGNED_OUT);
            }
        } catch {
            // As above.
        }
    }

    function arrive() {
        noteSignIn();
        const sent = read();
        if (!sent) {
            return;
        }
        if (document.body.classList.contains("login") || document.querySelector(".refusal")) {
            write({ ...sent, isRefused: true, isUnsure: document.querySelector("[data-unsure]") !== null });
            return;
        }
        const form = posts().filter((each) => path(each) === sent.path)[sent.place];
        if (sent.isRefused && sent.user === user() && !form) {
            return; // until the form is opened again
        }
        forget();
        if (sent.isRefused && sent.user === user()) {
            restore(form, sent);
        }
    }

    /** Pass over a second press while the first one is under way. */
    function sendOnce(event) {
        if (underWay.has(event.target)) {
            event.preventDefault();
            event.stopImmediatePropagation();
        }
    }

    function noteSent({ target: form, defaultPrevented }) {
        if (form.method === "post" && !defaultPrevented) {
            underWay.add(form);
            setTimeout(() => underWay.delete(form), UNDER_WAY);
        }
    }

    addEventListener("submit", sendOnce, true);
    addEventListener("submit", remember, true);
    addEventListener("submit", noteSent);
    addEventListener("pageshow", () => (underWay = new WeakSet()));
    addEventListener("DOMContentLoaded", arrive);
})();
