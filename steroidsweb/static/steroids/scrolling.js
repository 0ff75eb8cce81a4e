// What scrolls is a stop of the Tab key, as the arrow keys move only what has the focus, and is named by the heading
// that stands above it. Lists of the admin and its forms, which have no <main>, get the landmark, too.
const scrolls = (box) => {
    const isLonger = box.scrollHeight > box.clientHeight + 1, isWider = box.scrollWidth > box.clientWidth + 1;
    if (!isLonger && !isWider) {
        return false;
    }
    const style = getComputedStyle(box);
    return isLonger && /auto|scroll/.test(style.overflowY) || isWider && /auto|scroll/.test(style.overflowX);
};
// Lines of code scroll in the box around them: to ask each of thousands for its width takes a second.
const BOXES = "#content :is(div, pre, blockquote, p, ul, ol, table, code):not(.code-part *)";
const STOPS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
const HEADINGS = ":scope > :is(h1, h2, h3, legend, summary), :scope > * > :is(h1, h2, h3)";
const titleOf = (box) => box && (box.querySelector(HEADINGS)?.textContent.trim() || titleOf(box.parentElement));

const reach = (box) => {
    if (!box.hasAttribute("tabindex")) {
        if (box.matches("textarea, select") || box.querySelector(STOPS) || !scrolls(box)) {
            return;
        }
        box.tabIndex = 0;
    }
    if (box.tabIndex === 0 && box.matches("div, pre, blockquote, p") && !box.hasAttribute("role")) {
        box.setAttribute("role", "group");
    }
    if (box.tabIndex === 0 && !box.matches("[aria-label], [aria-labelledby]")) {
        box.setAttribute("aria-label", titleOf(box.parentElement) || "Text");
    }
};

let isDue = false;
const look = () => {
    isDue = isDue || requestAnimationFrame(() => {
        isDue = false;
        document.querySelectorAll(BOXES).forEach(reach);
    });
};

document.addEventListener("alpine:initialized", () => {
    if (!document.querySelector("main")) {
        document.getElementById("content")?.setAttribute("role", "main");
    }
    look();
    new MutationObserver(look).observe(document.body, {childList: true, subtree: true});
    document.addEventListener("toggle", look, true);
    addEventListener("resize", look);
});
