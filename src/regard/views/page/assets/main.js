import { openRecording } from "./data/payload.js";

const recording = await openRecording(document);
document.title = recording.title || recording.model;
