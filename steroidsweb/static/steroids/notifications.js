// The page Notifications: browser notifications are asked for here and nowhere else, by a button.

const WANTED = "steroids.browser-notifications";
const box = document.querySelector("[data-browser]");

function state() {
    if (!("Notification" in window)) {
        return "missing";
    }
    if (Notification.permission === "denied") {
        return "denied";
    }
    return Notification.permission === "granted" && localStorage.getItem(WANTED) === "on" ? "on" : "off";
}

function show() {
    for (const each of box.querySelectorAll("[data-when]")) {
        each.hidden = each.dataset.when !== state();
    }
}

if (box) {
    box.addEventListener("click", async (event) => {
        const wish = event.target.closest("[data-browser-set]")?.dataset.browserSet;
        if (!wish) {
            return;
        }
        if (wish === "on" && (await Notification.requestPermission()) !== "granted") {
            show();
            return;
        }
        localStorage.setItem(WANTED, wish);
        show();
    });
    show();
}

// Quiet hours and the digest are in the person's own time: a new channel starts with the browser's zone.
const zone = document.querySelector("[data-own-zone]");
if (zone) {
    const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if ([...zone.options].some((option) => option.value === own)) {
        zone.value = own;
    }
}
