// The word by which unfold draws an icon is no part of a name: people who listen heard "gavel Queue". Of what has no
// other name it is the name.
const CONTROLS = "a, button, label, summary, [role=button]";
const NAMES = { add: "Add", balance: "Dashboard", cancel: "Remove", more_vert: "More", unfold_more: "Account" };
const isNamed = (control, word) =>
    control.matches("[aria-label], [aria-labelledby], [title]") || control.textContent.trim() !== word;

const hideWords = () => {
    for (const icon of document.querySelectorAll(".material-symbols-outlined:not([aria-hidden])")) {
        const word = icon.textContent.trim(), control = icon.closest(CONTROLS);
        if (control && !isNamed(control, word)) {
            (control.control ?? control).setAttribute("aria-label", NAMES[word] ?? word.replaceAll("_", " "));
        }
        icon.setAttribute("aria-hidden", "true");
    }
};

// unfold calls what sorts a list the same in each column.
const nameSorting = () => {
    for (const link of document.querySelectorAll("th .sortoptions a")) {
        const column = link.closest("th");
        link.setAttribute("aria-label", `${link.title}: ${column.querySelector(".text").textContent.trim()}`);
        column.ariaSort = column.querySelector(".ascending") ? "ascending" : "descending";
    }
};

document.addEventListener("DOMContentLoaded", () => {
    hideWords();
    nameSorting();
    new MutationObserver(hideWords).observe(document.body, { childList: true, subtree: true });
});
