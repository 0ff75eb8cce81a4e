// On paper every page is light: browsers print the bright words of the dark theme and leave out what is behind them.

"use strict";

(() => {
    const { classList } = document.documentElement;
    let wasDark = false;
    addEventListener("beforeprint", () => {
        wasDark = classList.contains("dark");
        classList.remove("dark");
    });
    addEventListener("afterprint", () => classList.toggle("dark", wasDark));
})();
