// On the page of a dispute, before anything else: whoever came with a key in order to write may be writing
// already. What is typed before the field stands is kept, with what was typed on the page before, until
// dispute.js takes it. Not a module, because modules wait for the whole page.

"use strict";

(() => {
    const TYPED = "steroids.typed";

    function brought() {
        try {
            const { path, typed } = JSON.parse(sessionStorage.getItem(TYPED));
            sessionStorage.removeItem(TYPED);
            return path === location.pathname ? typed : "";
        } catch {
            return ""; // nothing was typed, or the browser keeps nothing
        }
    }

    function collect(event) {
        const isText = event.key.length === 1 || event.key === "Backspace";
        if (!isText || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("textarea, input")) {
            return;
        }
        typed = event.key === "Backspace" ? typed.slice(0, -1) : typed + event.key;
        event.preventDefault();
    }

    if (location.hash !== "#note" && !new URLSearchParams(location.search).has("choose")) {
        return;
    }
    let typed = brought();
    const stop = () => document.removeEventListener("keydown", collect, true);
    document.addEventListener("keydown", collect, true);
    addEventListener("load", stop);
    window.takeTyped = () => {
        stop();
        const taken = typed;
        typed = "";
        return taken;
    };
})();
