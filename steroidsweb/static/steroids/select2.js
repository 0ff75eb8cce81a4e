// Names for the parts of a Select2 box, which takes none from the label of its field.
const name = box => {
    const label = box.previousElementSibling?.labels?.[0]?.textContent.trim();
    if (label) {
        for (const part of box.querySelectorAll("[role=combobox], [role=textbox], [role=searchbox]")) {
            part.removeAttribute("aria-labelledby");
            part.setAttribute("aria-label", label);
        }
    }
};
const nameAll = () => document.querySelectorAll(".select2-container").forEach(name);
window.addEventListener("load", nameAll);
document.addEventListener("focusin", nameAll);  // a box of a row that was added since
