// Filters that apply as soon as one is chosen.
//
// Keys walk through the choices of a closed list and change it at each step. What they chose applies with Enter or
// once the list is left, and the page that comes puts the person back where they were.

const PLACE = `filter ${location.pathname}`;
const CHOOSES = new Set(["Enter", " "]); // in an open list; any other key only walks on

/** Let the form apply by itself and ask for nothing that is empty, so that the address names only what is asked. */
export function applyAtOnce(filters) {
    let key = ""; // the last one in a list, until a pointer is used
    let isAhead = false; // a list shows a choice that was not applied yet

    function apply(field) {
        isAhead = false;
        if (key && field?.name) {
            sessionStorage.setItem(PLACE, field.name);
        }
        filters.requestSubmit();
    }

    filters.classList.add("has-script");
    filters.addEventListener("pointerdown", () => (key = ""));
    filters.addEventListener("keydown", (event) => {
        if (!event.target.matches("select")) {
            return;
        }
        key = event.key;
        if (isAhead && key === "Enter") {
            event.preventDefault();
            apply(event.target);
        }
    });
    filters.addEventListener("change", (event) => {
        if (!event.target.matches("select")) {
            return;
        }
        isAhead = key !== "" && !CHOOSES.has(key);
        if (!isAhead) {
            apply(event.target);
        }
    });
    filters.addEventListener("focusout", (event) => {
        if (isAhead) {
            apply(filters.contains(event.relatedTarget) ? event.relatedTarget : event.target);
        }
    });
    filters.addEventListener("formdata", (event) => {
        for (const [name, value] of [...event.formData]) {
            if (!value) {
                event.formData.delete(name);
            }
        }
    });
    goBack(filters);
}

function goBack(filters) {
    const field = filters.elements[sessionStorage.getItem(PLACE)];
    if (field) {
        sessionStorage.removeItem(PLACE);
        field.autofocus = true; // for focus.js, if the page is not shown yet
        field.focus();
    }
}
