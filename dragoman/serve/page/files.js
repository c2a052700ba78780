// What was said, as files, also in mid-talk. The server makes captions; sound is what was received.
import { ask } from "./room.js";
import { wavOf } from "./wav.js";

export async function saveText(room, token, name) {
  const answer = await ask(`/v1/rooms/${room}/${name}`, token);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  save(await answer.blob(), name);
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
