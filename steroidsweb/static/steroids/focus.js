// Unfold hides the page until Alpine has started, and what is hidden takes no focus: it is given once it is seen.
// The first field that is wrong gets it, else the one that asks for it, else the first where something is added.
const isSeen = (field) => field.offsetParent && !field.disabled && field.type !== "hidden";
const seen = (fields) => [...fields].find(isSeen);

const focusFirst = () => {
    if (document.activeElement === document.body) {
        const added = document.getElementById("django-admin-form-add-constants")?.dataset.modelName;
        const first = seen(document.querySelectorAll("[aria-invalid=true]"))
            ?? seen(document.querySelectorAll("[autofocus]"))
            ?? seen(document.querySelectorAll(`#${added}_form :is(input, select, textarea)`));
        first?.focus();
    }
};

document.addEventListener("alpine:initialized", () => requestAnimationFrame(focusFirst));
