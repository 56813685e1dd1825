// The thin bar above the views and the map: back to the texts, and from the one to the other.

import { getJson } from "../map/client.js";
import { lookAddress, mapAddress } from "../map/links.js";
import { chooseLook, firstLanguage } from "../map/memory.js";
import { readAddress } from "../page/address.js";
import { make } from "../page/elements.js";
import { say } from "../page/languages.js";

const [, here, name] = location.pathname.split("/");
const id = decodeURIComponent(name ?? "");
const toViews = make("a", { href: "#", "aria-current": here === "look" ? "page" : null });
const toMap = make("a", { href: "#", "aria-current": here === "map" ? "page" : null });
const home = make("a", { href: "/", class: "back" });
const bar = make("nav", { class: "app-bar" }, home, make("span", { class: "app-tabs" }, toViews, toMap));
const known = { recording: { id, whole: true } };
let spoken = readAddress(location.hash).language ?? firstLanguage();

/** Addresses follow the place: they are made when somebody is about to use them. */
function point() {
  const now = { call: 0, head: 0, ...readAddress(location.hash) };
  toViews.setAttribute("href", here === "look" ? location.href : lookAddress(known.recording, now));
  toMap.setAttribute("href", here === "map" ? location.href : mapAddress(id, location));
}

/** Words follow the language that the page below speaks. */
function speakAgain() {
  home.textContent = `‹ ${say("app.home")}`;
  toViews.textContent = say("app.views");
  toMap.textContent = say("app.map");
}

/** The page below keeps no memory of its own; what is chosen there holds for the whole app. */
function heed() {
  const language = document.documentElement.lang === "en" ? "en" : "zh";
  if (language !== spoken) chooseLook({ language });
  spoken = language;
  speakAgain();
}

document.body.prepend(bar);
speakAgain();
point();
new MutationObserver(heed).observe(document.documentElement, { attributeFilter: ["lang"] });
for (const event of ["pointerenter", "pointerdown", "focusin"]) bar.addEventListener(event, point);
getJson(`/api/recordings/${encodeURIComponent(id)}`).then((recording) => {
  known.recording = recording;
  point();
}, () => {});
