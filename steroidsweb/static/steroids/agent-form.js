// The form of an agent: only what fits its provider is shown, known words are buttons, and a check that is
// under way is followed. Without this script everything is there.

const LOOKED_AFTER = 2000; // milliseconds
const cards = [...document.querySelectorAll(".provider-cards input")];
const fieldsOf = (card) => card.dataset.fields.split(" ").filter(Boolean);
const names = new Set(cards.flatMap(fieldsOf));

function showFitting() {
    const chosen = cards.find((card) => card.checked);
    const fits = new Set(chosen ? fieldsOf(chosen) : names);
    for (const name of names) {
        const input = document.getElementById(`id_${name}`);
        if (!input) continue; // a person who may only look has no fields
        input.disabled = !fits.has(name); // what is not shown is not sent either
        rowOf(input).hidden = !fits.has(name);
    }
    document.getElementById("agent_form")?.setAttribute("data-fits", "");
}

// The largest box around the input that holds no other field.
function rowOf(input) {
    let row = input;
    while (row.parentElement.querySelectorAll("input, select, textarea").length === 1) row = row.parentElement;
    return row;
}

function wordsOf(input) {
    return [...input.value.matchAll(/"([^"]*)"|([^\s,]+)/g)].map((found) => found[1] ?? found[2]);
}

function makeButtons(line) {
    const input = document.getElementById(`id_${line.dataset.words}`);
    const buttons = [...line.querySelectorAll(".agent-word")].map((word) => {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "agent-word";
        button.textContent = word.textContent;
        word.replaceWith(button);
        return button;
    });
    const mark = () => {
        const chosen = wordsOf(input);
        for (const button of buttons) button.setAttribute("aria-pressed", chosen.includes(button.textContent));
    };
    line.addEventListener("click", (event) => {
        const word = event.target.closest("button")?.textContent;
        if (!word) return;
        const chosen = wordsOf(input);
        const next = chosen.includes(word) ? chosen.filter((other) => other !== word) : [...chosen, word];
        input.value = next.map((each) => (/[\s,]/.test(each) ? `"${each}"` : each)).join(", ");
        mark();
    });
    input.addEventListener("input", mark);
    mark();
}

async function follow(place) {
    try {
        const answer = await fetch(place.dataset.waits, { headers: { Accept: "application/json" } });
        if (!answer.ok || answer.redirected) return; // signed out: the page says so at the next click
        const check = await answer.json();
        if (place.textContent !== check.says) place.textContent = check.says;
        if (!check.is_asked) return;
    } catch {
        // The server may be away for a moment.
    }
    setTimeout(follow, LOOKED_AFTER, place);
}

for (const card of cards) card.addEventListener("change", showFitting);
showFitting();
for (const line of document.querySelectorAll(".agent-words")) makeButtons(line);
const place = document.getElementById("last-check");
if (place?.dataset.waits) follow(place);
