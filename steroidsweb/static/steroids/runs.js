// The list of runs: filters that apply at once, toasts that close.

import { applyAtOnce } from "./filters.js";
import "./keys.js";

applyAtOnce(document.querySelector(".filters"));
