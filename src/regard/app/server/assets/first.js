// Before the views of a recording begin: tells them in which language.

import { firstLanguage } from "../map/memory.js";

document.documentElement.dataset.language = firstLanguage();
