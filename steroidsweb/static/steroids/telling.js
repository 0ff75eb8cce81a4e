// On every page: what it says about the last click is told to screen readers. They tell what changes in a region, and
// not what stands in it from the beginning; so it is put in once more when they have come to rest.
const PAUSE = 300; // milliseconds

document.addEventListener("alpine:initialized", () => setTimeout(() => {
    for (const region of document.querySelectorAll("[data-tell], [role=alert]")) {
        if (!region.contains(document.activeElement)) {
            region.append(...region.childNodes);
        }
    }
}, PAUSE));
