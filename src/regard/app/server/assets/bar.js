// The thin bar above the views and the map, with links between them and back to the texts.

import { chooseLook, firstLanguage } from "/assets/map/browser_storage.js";
import { getJson } from "/assets/map/client.js";
import { lookAddress, mapAddress } from "/assets/map/links.js";
import { readAddress } from "/assets/page/address.js";
import { make } from "/assets/page/elements.js";
import { say } from "/assets/page/languages.js";

const [, here, name] = location.pathname.split("/");
const id = decodeURIComponent(name ?? "");
const toViews = make("a", { href: "#", "aria-current": here === "look" ? "page" : null });
const toMap = make("a", { href: "#", "aria-current": here === "map" ? "page" : null });
const home = make("a", { href: "/", class: "back" });
const bar = make("nav", { class: "app-bar" }, home, make("span", { class: "app-tabs" }, toViews, toMap));
const known = { recording: { id, whole: true } };
let spoken = readAddress(location.hash).language ?? firstLanguage();

/** Links lead to the current place, so they are made when they are about to be used. */
function point() {
  const now = { call: 0, head: 0, ...readAddress(location.hash) };
  toViews.setAttribute("href", here === "look" ? location.href : lookAddress(known.recording, now));
  toMap.setAttribute("href", here === "map" ? location.href : mapAddress(id, location));
}

/** Uses the language of the page below. */
function speakAgain() {
  home.textContent = `‹ ${say("app.home")}`;
  toViews.textContent = say("app.views");
  toMap.textContent = say("app.map");
}

/** The page below stores nothing; a language chosen there is chosen for the whole app. */
function followLanguage() {
  const language = document.documentElement.lang === "en" ? "en" : "zh";
  if (language !== spoken) chooseLook({ language });
  spoken = language;
  speakAgain();
}

document.body.prepend(bar);
speakAgain();
point();
new MutationObserver(followLanguage).observe(document.documentElement, { attributeFilter: ["lang"] });
for (const event of ["pointerenter", "pointerdown", "focusin"]) bar.addEventListener(event, point);
getJson(`/api/recordings/${encodeURIComponent(id)}`).then(
  (recording) => {
    known.recording = recording;
    point();
  },
  () => {},
);
