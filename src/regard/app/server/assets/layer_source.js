// Gives the page of a long text the numbers of other layers, and what is shown of all heads.

import { followJob, getJson, getText, postJson } from "/assets/map/client.js";
import { openCall } from "/assets/page/data/payload.js";
import "/assets/page/main.js";

const id = decodeURIComponent(location.pathname.split("/")[2]);
const base = `/api/recordings/${encodeURIComponent(id)}`;

/** The numbers of a call, out of its own page. */
async function load(call, signal, onShare) {
  const { job } = await postJson(`${base}/pages`, { call });
  if (job) await followJob(job, ({ share }) => onShare(share), signal);
  const page = await getText(`/look/${encodeURIComponent(id)}?call=${call}`, signal);
  return openCall(new DOMParser().parseFromString(page, "text/html"), call);
}

/** What is shown of all heads: every call as soon as it is ready, the given one first, roles at the end. */
async function summarise(call, onFound, onShare) {
  let known = 0;
  const take = async () => {
    const found = await getJson(`${base}/summaries?first=${known}`);
    known += found.summaries.length;
    onFound({ ...found, summaries: found.summaries.map(withPictures) });
  };
  const { job } = await postJson(`${base}/summaries`, { call });
  let taken = Promise.resolve();
  if (job)
    await followJob(job, ({ share }) => {
      onShare(share);
      taken = taken.then(take);
    });
  await taken;
  await take();
}

function withPictures({ thumbnails, ...rest }) {
  if (!thumbnails) return { ...rest, thumbnails };
  const values = Uint8Array.from(atob(thumbnails.values), (letter) => letter.charCodeAt(0));
  return { ...rest, thumbnails: { ...thumbnails, values } };
}

window.regard.recording.layers.use({ load, summarise });
