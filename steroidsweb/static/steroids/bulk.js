// What came of a bulk act: one key takes it back.

import { help, onKeys, undo } from "./keys.js";

onKeys({ U: undo, "?": help });
