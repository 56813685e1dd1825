// Shown until the views of a recording are written: requests them, shows progress, then opens them.

import { firstLanguage } from "/assets/map/browser_storage.js";
import { followJob, getJson, postJson } from "/assets/map/client.js";
import { readAddress } from "/assets/page/address.js";
import { datum, make } from "/assets/page/elements.js";
import { say, speak } from "/assets/page/languages.js";
import { wearTheme } from "/assets/page/theme.js";

const root = document.getElementById("regard");
const id = decodeURIComponent(location.pathname.split("/")[2]);
const call = new URLSearchParams(location.search).get("call");
speak(firstLanguage());
wearTheme("auto");

function show(job) {
  const share = Math.round(100 * job.share);
  root.replaceChildren(
    make(
      "div",
      { class: "job-waiting" },
      make("p", {}, say(`stage.${job.stage}`), " ", datum(`${share}%`)),
      make("progress", { max: "100", value: String(share) }),
    ),
  );
}

/** A large recording has a page for each call, not one of all; the call that the address asks for, or the first. */
async function callToOpen() {
  if (call !== null) return null;
  const { whole, calls } = await getJson(`/api/recordings/${encodeURIComponent(id)}`);
  const { call: asked = 0 } = readAddress(location.hash);
  return whole ? null : asked < calls.length ? asked : 0;
}

async function open() {
  const own = await callToOpen();
  if (own !== null) {
    location.replace(`${location.pathname}?call=${own}${location.hash}`);
    return;
  }
  const { job } = await postJson(
    `/api/recordings/${encodeURIComponent(id)}/pages`,
    call === null ? {} : { call: Number(call) },
  );
  if (job) await followJob(job, show);
  location.reload();
}

try {
  await open();
} catch (error) {
  root.replaceChildren(make("p", { class: "notice", role: "alert" }, error.message));
}
