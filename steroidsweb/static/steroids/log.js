// A log that follows a running agent: asks for what is new, keeps the place of whoever scrolled up.

import "./keys.js";

const POLL = 1500; // milliseconds
const PATIENCE = 30_000; // the longest pause after answers that did not come
const KEPT = 1024 * 1024; // characters in the page
const NEAR = 24; // pixels from the end that still count as the end

function follow(log) {
    const text = log.querySelector("[data-log-text]");
    const state = log.querySelector("[data-log-state]");
    const button = log.querySelector("[data-log-follow]");
    let mark = Number(log.dataset.mark);
    let kept = text.textContent.length;
    let following = true;
    let pause = POLL;

    function atEnd() {
        return text.scrollHeight - text.scrollTop - text.clientHeight < NEAR;
    }

    function setFollowing(wanted) {
        following = wanted;
        button.setAttribute("aria-pressed", String(wanted));
        if (wanted) {
            text.scrollTop = text.scrollHeight;
        }
    }

    function append(piece) {
        const node = document.createElement("span");
        node.textContent = piece;
        text.append(node);
        kept += piece.length;
        log.querySelector("[data-log-empty]").hidden = true;
        while (kept > KEPT && text.firstChild !== text.lastChild) {
            const height = text.scrollHeight;
            kept -= text.firstChild.textContent.length;
            text.firstChild.remove();
            log.querySelector("[data-log-note]").hidden = false;
            if (!following) {
                text.scrollTop -= height - text.scrollHeight; // what is read stays where it is
            }
        }
        if (following) {
            text.scrollTop = text.scrollHeight;
        }
    }

    // What the run costs stands beside its log, on its own page only.
    function tell(where, words) {
        const place = document.querySelector(where);
        if (place && words && place.textContent !== words) {
            place.textContent = words;
        }
    }

    /** The facts beside the log, as they are now: the run was begun, or has ended. */
    async function freshen() {
        const answer = await fetch(location.href, { headers: { Accept: "text/html", "X-Live": "1" } });
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const [ours, theirs] = [document, page].map((each) => [...each.querySelectorAll("[data-fresh]")]);
        if (answer.ok && !answer.redirected && ours.length === theirs.length) {
            ours.forEach((part, index) => part.replaceWith(theirs[index]));
        }
    }

    async function ask() {
        const answer = await fetch(`${log.dataset.url}?after=${mark}`, { headers: { Accept: "application/json" } });
        if (answer.status === 401) {
            return null;
        }
        if (!answer.ok || answer.redirected) {
            throw new Error(`The log answers ${answer.status}.`);
        }
        return answer.json();
    }

    async function turn() {
        if (document.hidden) {
            setTimeout(turn, POLL);
            return;
        }
        let wait = POLL;
        try {
            const news = await ask();
            if (news === null) {
                state.textContent = "You are signed out: reload the page to sign in.";
                return;
            }
            pause = POLL;
            if (news.text) {
                append(news.text);
            }
            if (news.cut) {
                log.querySelector("[data-log-note]").hidden = false;
            }
            mark = news.mark;
            state.textContent = news.state;
            tell("[data-run-cost]", news.cost);
            tell("[data-run-tokens]", news.tokens);
            log.classList.toggle("is-silent", news.silent);
            if (news.status !== log.dataset.status) {
                log.dataset.status = news.status;
                await freshen();
            }
            if (news.ended) {
                end();
                return;
            }
            wait = news.more ? 0 : POLL;
        } catch {
            pause = Math.min(pause * 2, PATIENCE);
            wait = pause;
            state.textContent = "The log cannot be reached just now; it is tried again.";
        }
        setTimeout(turn, wait);
    }

    function end() {
        log.dataset.ended = "";
        button.hidden = true;
        for (const form of document.querySelectorAll("form[action$='/stop/']")) {
            form.hidden = form.action.includes(log.dataset.url.replace(/log\/$/, "")); // there is nothing left to stop
        }
    }

    button.addEventListener("click", () => setFollowing(!following));
    text.addEventListener("scroll", () => {
        if (following !== atEnd()) {
            setFollowing(!following);
        }
    });
    text.scrollTop = text.scrollHeight;
    if (!("ended" in log.dataset)) {
        button.hidden = false;
        turn();
    }
}

for (const log of document.querySelectorAll("[data-log]")) {
    follow(log);
}
