// What every playable has around it: its title, links to the others, language and theme.

import { make } from "../../page/assets/elements.js";
import { say, speak, TEXTS } from "../../page/assets/languages.js";
import { inksOf, wearTheme } from "../../page/assets/theme.js";
import { languageTool, themeTool } from "../../page/assets/tools.js";
import { learnErrors } from "./error_texts.js";

/** The starting numbers and texts that the file carries. */
function carried() {
  const data = JSON.parse(document.querySelector('[data-regard="play"]').textContent);
  for (const [language, texts] of Object.entries(data.texts)) Object.assign(TEXTS[language], texts);
  return data;
}

/**
 * Opens the page: `begin(data)` makes its state once, and `build(place, state, frame)` draws everything, at first
 * and whenever language or theme change.
 * @param {(data: any) => any} begin
 * @param {(place: HTMLElement, state: any, frame: any) => void} build
 */
export function openPlayable(begin, build) {
  const data = carried();
  learnErrors(data.errors);
  const choice = { language: data.language, theme: "auto", palette: "blue" };
  const state = begin(data);
  const rebuild = () => {
    speak(choice.language);
    wearTheme(choice.theme);
    const place = make("main", { class: data.page, id: "main" });
    document.getElementById("play").replaceChildren(topOf(data, choice, choose), place);
    document.title = `${say(`${data.page}.title`)} · regard`;
    build(place, state, { data, language: choice.language, inks: inksOf(choice) });
  };
  const choose = (patch) => {
    Object.assign(choice, patch);
    rebuild();
    const [tool] = Object.keys(patch);
    /** @type {HTMLElement | null} */ (document.querySelector(`.page-tools [data-tool="${tool}"]`))?.focus();
  };
  window
    .matchMedia("(prefers-color-scheme: dark)")
    .addEventListener("change", () => choice.theme === "auto" && rebuild());
  rebuild();
  window.regard = { state, choose, choice };
}

/** The lessons that send learners to this page: as links on a site, elsewhere by their names. */
function lessonsOf({ lessons, course }, language) {
  const names = course
    ? course.lessons[language].map(([title, address]) => make("a", { href: address }, title))
    : lessons.map((number) => make("span", {}, say(`lesson.${number}`)));
  const label = say(course ? "lessons" : "lessons.alone");
  return make("p", { class: "lessons" }, label, ...names.flatMap((name) => [" ", name]));
}

function topOf({ page, links, lessons, course }, { language, theme }, choose) {
  const others = links.map(([name, file]) =>
    name === page
      ? make("a", { "aria-current": "page" }, say(`${name}.title`))
      : make("a", { href: file }, say(`${name}.title`)),
  );
  const tools = [
    ["language", languageTool(language, choose)],
    ["theme", themeTool(theme, choose)],
  ].map(([name, button]) => {
    button.dataset.tool = name;
    return button;
  });
  return make(
    "header",
    { class: "top" },
    make(
      "div",
      { class: "bar" },
      make(course ? "a" : "b", { class: "brand", translate: "no", href: course?.home[language] ?? null }, "regard"),
      others.length ? make("nav", { "aria-label": say("pages") }, ...others) : null,
      make("div", { class: "page-tools" }, ...tools),
    ),
    make("h1", {}, say(`${page}.title`)),
    make("p", { class: "lead" }, say(`${page}.lead`)),
    lessonsOf({ lessons, course }, language),
  );
}

/** A labelled slider with its value beside it. */
export function slider(label, { min, max, step, value, shown, hint = null }, change) {
  const output = make("output", {}, shown(value));
  const input = make("input", {
    type: "range",
    min,
    max,
    step,
    value,
    "aria-label": label,
    "aria-valuetext": shown(value),
    on: {
      input: () => {
        const now = Number(input.value);
        output.textContent = shown(now);
        input.setAttribute("aria-valuetext", shown(now));
        change(now);
      },
    },
  });
  return make(
    "label",
    { class: "slider" },
    make("span", { class: "name" }, label, hint ? make("small", {}, hint) : null),
    input,
    output,
  );
}

/** A box that is ticked or not. */
export function tick(label, checked, change) {
  const input = make("input", { type: "checkbox", checked, on: { change: () => change(input.checked) } });
  return make("label", { class: "tick" }, input, make("span", {}, label));
}
