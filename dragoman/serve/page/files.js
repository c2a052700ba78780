// What was said, as files, also in mid-talk. The server makes captions; sound is what was received.
import { ask } from "./room.js";
import { wavOf } from "./wav.js";

export const NOTHING = "There is nothing to save: nothing was said yet, or the server was started anew since. "
  + "What this page shows can be copied.";

// A server that was started anew knows no talk, and may not know the room's token either.
export async function saveText(room, token, name) {
  const answer = await ask(`/v1/rooms/${room}/${name}`, token);
  const blob = await answer.blob();
  const text = (await blob.text()).trim();
  if (answer.status === 401 || (answer.ok && ["", "WEBVTT"].includes(text))) throw new Error(NOTHING);
  if (!answer.ok) throw new Error(text);
  save(blob, name);
}

export async function saveSound(phrases) {
  if (!phrases.length) throw new Error("Nothing was spoken aloud yet: turn the voice on first.");
  save(await wavOf(phrases), "translation.wav");
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
