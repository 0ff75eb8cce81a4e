// On every page: how many disputes wait for the person, in the tab's title and in the sidebar, kept up to
// date without reloading; and a browser notification of a new one where the person asked for it (in the page
// Notifications). Not a module, because unfold loads it as a plain script in the head.

"use strict";

(() => {
    const EVERY = 30_000;
    const WANTED = "steroids.browser-notifications";
    const SEEN = "steroids.newest-dispute";
    const COUNT = /^\s*\(\d+\+?\)\s*/;

    function show(count) {
        const bare = document.title.replace(COUNT, "");
        document.title = count === "0" ? bare : `(${count}) ${bare}`;
        const badge = document.querySelector('a[href="/queue/"] > span:nth-child(3)');
        if (badge) {
            badge.textContent = count;
            badge.hidden = count === "0";
        }
    }

    /** Of several open tabs only the first one tells: what is seen is kept in common. */
    function tell(newest) {
        const seen = Number(localStorage.getItem(SEEN));
        if (!newest || newest.id <= seen) {
            return;
        }
        localStorage.setItem(SEEN, newest.id);
        const wanted = localStorage.getItem(WANTED) === "on" && "Notification" in window;
        if (!seen || !wanted || Notification.permission !== "granted" || document.hasFocus()) {
            return;
        }
        const shown = new Notification("Waits for your ruling", { body: newest.title, tag: `dispute-${newest.id}` });
        shown.addEventListener("click", () => {
            window.focus();
            location.assign(newest.url);
        });
    }

    async function look() {
        let answer;
        try {
            answer = await fetch("/notifications/count/", { credentials: "same-origin" });
        } catch {
            return true; // the server is away for a moment
        }
        if (!answer.ok) {
            return false; // signed out: nothing is asked any more
        }
        const { count, newest } = await answer.json();
        show(count);
        tell(newest);
        document.dispatchEvent(new CustomEvent("steroids:count", { detail: { count, newest } }));
        return true;
    }

    async function keepLooking() {
        if (await look()) {
            setTimeout(keepLooking, EVERY);
        }
    }

    addEventListener("DOMContentLoaded", () => {
        if (document.body.classList.contains("login")) {
            return; // nobody is signed in on pages of that look
        }
        document.addEventListener("visibilitychange", () => document.hidden || look());
        keepLooking();
    });
})();
