// The queue: moving over its rows, acting on them with keys, selecting many, filters that apply at once.

import { applyAtOnce } from "./filters.js";
import { goToWrite, help, inField, onKeys, undo } from "./keys.js";

const REFRESH = 20_000;
const KEPT = `row ${location.pathname}`; // where the person stood, for the way back
const main = document.querySelector("main.queue");
const menu = document.getElementById("menu");
const bulk = document.getElementById("bulk");
const act = document.getElementById("act");
let place = 0;
let picked = null; // the row from which Shift selects on

function rows() {
    return [...main.querySelectorAll("[data-row]")];
}

function current() {
    return rows()[place];
}

// --- Moving ----------------------------------------------------------------------------------------------

function select(wanted, scroll = true) {
    const all = rows();
    main.querySelector("[data-row][aria-current]")?.removeAttribute("aria-current");
    place = Math.min(Math.max(wanted, 0), Math.max(all.length - 1, 0));
    const row = all[place];
    row?.setAttribute("aria-current", "true");
    if (scroll) {
        row?.scrollIntoView({ block: "nearest" });
    }
    if (row) {
        sessionStorage.setItem(KEPT, row.dataset.row);
    }
}

function restore() {
    const kept = sessionStorage.getItem(KEPT);
    const found = rows().findIndex((row) => row.dataset.row === kept);
    select(found < 0 ? place : found);
}

main.addEventListener("focusin", (event) => {
    const row = event.target.closest("[data-row]");
    if (row) {
        select(rows().indexOf(row), false);
    }
});

// --- One row ---------------------------------------------------------------------------------------------

function open(event) {
    if (event.target.closest("a, button, summary, input") || !current()) {
        return false;
    }
    current().querySelector(".cell-question a").click();
}

function go(more, hasOwnWords = false) {
    return () => {
        if (!current()) {
            return false;
        }
        goToWrite(current().querySelector(".cell-question a").href + more, hasOwnWords);
    };
}

async function openMenu(link, ...wanted) {
    const url = new URL(link.href);
    url.searchParams.set("part", "1");
    try {
        const answer = await fetch(url, { headers: { Accept: "text/html" } });
        if (!answer.ok || answer.redirected) {
            throw new Error(String(answer.status));
        }
        menu.innerHTML = await answer.text();
    } catch {
        location.assign(link.href); // the same as a page of its own
        return;
    }
    const close = document.createElement("button");
    close.className = "button";
    close.type = "button";
    close.textContent = "Close";
    close.addEventListener("click", () => menu.close());
    menu.append(close);
    menu.showModal();
    (wanted.map((each) => menu.querySelector(each)).find(Boolean) ?? close).focus();
}

function menuOf(...wanted) {
    return () => {
        const link = current()?.querySelector("[data-menu]");
        if (!link) {
            return false;
        }
        openMenu(link, ...wanted);
    };
}

function mine() {
    const pick = current()?.querySelector("[data-pick]");
    if (!pick) {
        return false; // one may not rule there, or it waits for nobody
    }
    act.action = new URL(`D-${pick.value}/assign/`, new URL("/queue/", location.href)).href;
    act.requestSubmit();
}

main.addEventListener("click", (event) => {
    const link = event.target.closest("[data-menu]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
        event.preventDefault();
        select(rows().indexOf(link.closest("[data-row]")), false);
        openMenu(link, "button, select");
    }
});

// --- Many rows -------------------------------------------------------------------------------------------

function boxes() {
    return [...main.querySelectorAll("[data-pick]")];
}

function picks() {
    return boxes().filter((box) => box.checked);
}

function tell() {
    if (!bulk) {
        return;
    }
    const number = picks().length;
    const every = bulk.querySelector("[data-every]").checked;
    bulk.querySelector("[data-picked]").textContent = every ? "All" : number;
    bulk.classList.toggle("is-open", number > 0 || every);
    const all = main.querySelector("[data-all]");
    if (all) {
        all.checked = number > 0 && number === boxes().length;
        all.indeterminate = number > 0 && !all.checked;
    }
}

/** Tick or untick a row; with `range` also those between it and the row before. */
function pick(box, checked, range) {
    const all = boxes();
    const from = range && picked && all.includes(picked) ? all.indexOf(picked) : all.indexOf(box);
    const to = all.indexOf(box);
    for (const each of all.slice(Math.min(from, to), Math.max(from, to) + 1)) {
        each.checked = checked;
    }
    picked = box;
    tell();
}

function toggle(event) {
    const box = current()?.querySelector("[data-pick]");
    if (!box) {
        return false;
    }
    pick(box, event.shiftKey || !box.checked, event.shiftKey);
}

main.addEventListener("click", (event) => {
    const box = event.target.closest("[data-pick]");
    if (box) {
        pick(box, box.checked, event.shiftKey);
    } else if (event.target.matches("[data-all]")) {
        for (const each of boxes()) {
            each.checked = event.target.checked;
        }
        tell();
    } else if (event.target.matches("[data-every]")) {
        tell();
    }
});

// --- Filters ---------------------------------------------------------------------------------------------

const filters = document.querySelector(".filters");
const search = filters.querySelector("input[type=search]");
applyAtOnce(filters);

function find() {
    search.focus();
    search.select();
}

for (const popover of document.querySelectorAll("[data-popover]")) {
    document.addEventListener("click", (event) => popover.contains(event.target) || (popover.open = false));
    popover.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            popover.open = false;
            popover.querySelector("summary").focus();
        }
    });
}

// --- Staying true ----------------------------------------------------------------------------------------

function isBusy() {
    const typing = document.activeElement && inField({ target: document.activeElement });
    const shown = document.querySelector("dialog[open], [data-popover][open]");
    return document.hidden || typing || shown || picks().length > 0;
}

/** Fetch tabs and rows anew and put them in place of ours, unless the person is in the middle of something. */
async function refresh() {
    if (isBusy()) {
        return;
    }
    try {
        const answer = await fetch(location.href, { headers: { Accept: "text/html", "X-Live": "1" } });
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        const parts = [...fresh.querySelectorAll("[data-live]")];
        const ours = [...document.querySelectorAll("[data-live]")];
        if (!answer.ok || answer.redirected || parts.length !== ours.length || isBusy()) {
            return;
        }
        const inside = ours.some((part) => part.contains(document.activeElement));
        ours.forEach((part, index) => part.innerHTML !== parts[index].innerHTML && part.replaceWith(parts[index]));
        restore();
        if (inside) {
            current()?.querySelector(".cell-question a").focus();
        }
    } catch {
        // the server is away for a moment; the next turn asks again
    }
}

setInterval(refresh, REFRESH);
window.addEventListener("focus", refresh);
setInterval(() => {
    for (const left of document.querySelectorAll("[data-left]")) {
        const [minutes, seconds] = left.textContent.split(":").map(Number);
        const rest = Math.max(60 * minutes + seconds - 1, 0); // the server counts; this clock may be wrong
        left.textContent = `${Math.floor(rest / 60)}:${String(rest % 60).padStart(2, "0")}`;
    }
}, 1000);
window.addEventListener("pageshow", () => tell()); // the browser may restore what was ticked

const choices = Object.fromEntries([..."ABCD12345"].map((letter) => [letter, go(`?choose=${letter}`, letter === "D")]));
onKeys({
    ...choices,
    J: () => select(place + 1),
    K: () => select(place - 1),
    ArrowDown: () => select(place + 1),
    ArrowUp: () => select(place - 1),
    Enter: open,
    N: go("#note", true),
    S: menuOf("[name=ending]", "[data-snooze]"),
    M: mine,
    X: toggle,
    "/": find,
    U: undo,
    "?": help,
});
restore();
tell();
