// Presence: whoever is about to rule shows it to others, prolongs it while typing, and gives it back.
// Nothing hangs on it: a claim keeps nobody from ruling.

const PROLONG = 60_000; // a claim lasts five minutes
const holders = document.querySelector("[data-claim]");
const form = document.querySelector("form[data-ruling]");

if (holders && form) {
    const token = form.elements.csrfmiddlewaretoken.value;
    let last = 0;
    let gone = false;

    async function claim() {
        if (Math.abs(Date.now() - last) < PROLONG) {
            return;
        }
        last = Date.now();
        try {
            await fetch(holders.dataset.claim, { method: "POST", headers: { "X-CSRFToken": token } });
        } catch {
            last = 0; // the next keystroke asks again
        }
    }

    function release() {
        if (!gone) {
            gone = true;
            const data = new FormData();
            data.append("csrfmiddlewaretoken", token);
            navigator.sendBeacon(holders.dataset.release, data);
        }
    }

    form.addEventListener("input", claim);
    form.addEventListener("change", claim);
    window.addEventListener("pagehide", release);
    window.addEventListener("pageshow", (event) => {
        if (event.persisted) {
            gone = false;
            last = 0;
            claim();
        }
    });
    claim();
}
