// Runs before the views of a recording and sets their language.

import { firstLanguage } from "/assets/map/browser_storage.js";

document.documentElement.dataset.language = firstLanguage();
