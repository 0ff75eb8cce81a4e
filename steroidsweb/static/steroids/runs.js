// The list of runs: filters that apply at once, toasts that close.

import "./keys.js";

const filters = document.querySelector(".filters");
filters.classList.add("has-script");
filters.addEventListener("change", () => filters.requestSubmit());
filters.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) {
        if (!value) {
            event.formData.delete(name); // so that the address names only what is asked
        }
    }
});
