// The board: moving over its cards, and moving a card to a column that the server offered for it.

import { applyAtOnce } from "./filters.js";
import { help, onKeys } from "./keys.js";

const board = document.querySelector(".board");
const columns = [...board.querySelectorAll("[data-column]")];
const moves = [...document.querySelectorAll("[data-move]")];
const dialog = document.getElementById("move");
const form = dialog.querySelector("form");
const said = document.querySelector("[data-said]");
let current = null;

// --- Where the person is ---------------------------------------------------------------------------------

function cardsOf(column) {
    return [...column.querySelectorAll("[data-card]")];
}

function select(card, focus = true) {
    if (!card) {
        return false;
    }
    current?.removeAttribute("aria-current");
    current = card;
    card.setAttribute("aria-current", "true");
    if (focus) {
        card.querySelector("a").focus({ preventScroll: true });
        card.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
}

function first() {
    return board.querySelector("[data-card]");
}

/** Bring into sight what needs a person, or else what is under way, or else the first card, as on a phone. */
function showStart() {
    const turns = [".card-line-human, .card-line-wrong", ".card-line-work", "[data-card]"];
    const start = turns.map((turn) => board.querySelector(turn)).find(Boolean);
    const [column, all] = [start?.closest("[data-column]").getBoundingClientRect(), board.getBoundingClientRect()];
    if (column?.right > all.right) {
        board.scrollLeft += column.left - all.left;
    }
}

function along(step) {
    if (!current) {
        return select(first());
    }
    const cards = cardsOf(current.closest("[data-column]"));
    return select(cards[cards.indexOf(current) + step]);
}

function across(step) {
    if (!current) {
        return select(first());
    }
    const row = cardsOf(current.closest("[data-column]")).indexOf(current);
    for (let at = columns.indexOf(current.closest("[data-column]")) + step; columns[at]; at += step) {
        const cards = cardsOf(columns[at]);
        if (cards.length) {
            return select(cards[Math.min(row, cards.length - 1)]);
        }
    }
    return false;
}

// --- Moving a card ---------------------------------------------------------------------------------------

/** The move that leads the card to the column; undefined where none does. */
function moveTo(card, column) {
    return moves.find((move) => move.dataset.at === card.dataset.at && move.dataset.to.split(" ").includes(column.dataset.column));
}

function propose(card, column) {
    const move = moveTo(card, column);
    if (!move) {
        return false;
    }
    select(card, false);
    form.action = move.dataset.url.replace("REF", card.id);
    form.elements.version.value = card.dataset.version;
    form.elements.note.required = "needsNote" in move.dataset;
    dialog.querySelector("h2").textContent = `${move.dataset.label}: ${card.id}`;
    dialog.querySelector("[data-hint]").textContent = move.dataset.hint;
    dialog.querySelector("[data-go]").textContent = move.dataset.label;
    dialog.showModal();
}

function carry(step) {
    if (!current) {
        return select(first());
    }
    for (let at = columns.indexOf(current.closest("[data-column]")) + step; columns[at]; at += step) {
        if (moveTo(current, columns[at])) {
            return propose(current, columns[at]);
        }
    }
    said.textContent = `${current.id} cannot be moved there by hand.`;
}

form.addEventListener("submit", () => (dialog.querySelector("[data-go]").disabled = true));
window.addEventListener("pageshow", () => (dialog.querySelector("[data-go]").disabled = false));
dialog.querySelector("[data-cancel]").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => select(current));
form.elements.note.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        form.requestSubmit();
    }
});

// --- Dragging --------------------------------------------------------------------------------------------

let dragged = null;

function mark(card) {
    for (const column of columns) {
        column.classList.toggle("is-open", card !== null && moveTo(card, column) !== undefined);
        column.classList.remove("is-over");
    }
    board.classList.toggle("is-dragging", card !== null);
}

board.addEventListener("dragstart", (event) => {
    dragged = event.target.closest?.("[data-card]") ?? null;
    if (dragged) {
        event.dataTransfer.setData("text/plain", dragged.id);
        event.dataTransfer.effectAllowed = "move";
        mark(dragged);
    }
});
board.addEventListener("dragover", (event) => {
    const column = event.target.closest("[data-column]");
    for (const each of columns) {
        each.classList.toggle("is-over", each === column && each.classList.contains("is-open"));
    }
    if (dragged && column && moveTo(dragged, column)) {
        event.preventDefault(); // only there it may be dropped
    }
});
board.addEventListener("drop", (event) => {
    event.preventDefault();
    const [card, column] = [dragged, event.target.closest("[data-column]")];
    if (card && column) {
        propose(card, column);
    }
});
board.addEventListener("dragend", () => {
    dragged = null;
    mark(null);
});

// --- Keys and filters ------------------------------------------------------------------------------------

board.addEventListener("focusin", (event) => {
    const card = event.target.closest("[data-card]");
    if (card && card !== current) {
        select(card, false);
    }
});

document.querySelectorAll("[data-instant]").forEach(applyAtOnce);

onKeys({
    H: (event) => (event.shiftKey ? carry(-1) : across(-1)),
    L: (event) => (event.shiftKey ? carry(1) : across(1)),
    J: () => along(1),
    K: () => along(-1),
    ArrowLeft: () => across(-1),
    ArrowRight: () => across(1),
    ArrowDown: () => along(1),
    ArrowUp: () => along(-1),
    Enter: (event) => {
        if (event.target.closest("a, button, summary") || !current) {
            return false;
        }
        current.querySelector("a").click();
    },
    "/": () => document.querySelector("input[type=search]").focus(),
    "?": help,
});

const named = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
if (named?.matches("[data-card]")) {
    select(named); // the card that was just moved
} else {
    showStart();
}
