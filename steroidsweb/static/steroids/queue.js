// The queue: moving over its rows, and filters that apply at once.

import { help, onKeys, undo } from "./keys.js";

const rows = [...document.querySelectorAll("[data-row]")];
let place = 0;

function select(wanted) {
    rows[place]?.removeAttribute("aria-current");
    place = Math.min(Math.max(wanted, 0), rows.length - 1);
    rows[place]?.setAttribute("aria-current", "true");
    rows[place]?.scrollIntoView({ block: "nearest" });
}

function open(event) {
    if (event.target.closest("a, button, summary") || !rows.length) {
        return false;
    }
    rows[place].querySelector("a").click();
}

for (const [index, row] of rows.entries()) {
    row.addEventListener("focusin", () => select(index));
}

const filters = document.querySelector(".filters");
const search = filters.querySelector("input[type=search]");
filters.classList.add("has-script");
filters.addEventListener("change", (event) => event.target.matches("select") && filters.requestSubmit());
filters.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) {
        if (!value) {
            event.formData.delete(name); // so that the address names only what is asked
        }
    }
});

function find() {
    search.focus();
    search.select();
}

onKeys({
    J: () => select(place + 1),
    K: () => select(place - 1),
    ArrowDown: () => select(place + 1),
    ArrowUp: () => select(place - 1),
    Enter: open,
    "/": find,
    U: undo,
    "?": help,
});
select(0);
