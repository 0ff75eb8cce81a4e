// The page of a task: keys.

import { help, onKeys, press } from "./keys.js";

onKeys({
    O: press("[data-open]"),
    V: press("[data-diff]"),
    N: () => {
        document.getElementById("note")?.focus();
    },
    "?": help,
});
