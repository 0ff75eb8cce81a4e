// Names for the parts of a Select2 box, which takes none from the label of its field.
const nameParts = box => {
    const label = box.previousElementSibling?.labels?.[0]?.textContent.trim();
    if (label) {
        for (const part of box.querySelectorAll("[role=combobox], [role=textbox], [role=searchbox]")) {
            part.removeAttribute("aria-labelledby");
            part.setAttribute("aria-label", label);
        }
    }
};
const nameAll = () => document.querySelectorAll(".select2-container").forEach(nameParts);
new MutationObserver(nameAll).observe(document, {childList: true, subtree: true});
