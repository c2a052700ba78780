// The interpreter's voice as a WAV file that lines up with the talk.
const RATE = 24000;

export async function wavOf(phrases) {
  const context = new OfflineAudioContext(1, 1, RATE);
  const parts = [];
  let at = 0; // samples written
  for (const { at_ms, sound } of phrases) {
    const start = Math.round((at_ms * RATE) / 1000);
    const samples = (await context.decodeAudioData(await sound.arrayBuffer())).getChannelData(0);
    const silence = new Int16Array(Math.max(0, start - at));
    const spoken = Int16Array.from(samples, (value) => Math.max(-1, Math.min(1, value)) * 32767);
    parts.push(new Blob([silence, spoken])); // out of memory: hours of it are hundreds of megabytes
    at = Math.max(at, start) + samples.length;
  }
  return new Blob([header(2 * at), ...parts], { type: "audio/wav" });
}

function header(bytes) {
  const view = new DataView(new ArrayBuffer(44));
  const text = (offset, letters) => [...letters].forEach((c, i) => view.setUint8(offset + i, c.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + bytes, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true); // one channel
  view.setUint32(24, RATE, true);
  view.setUint32(28, 2 * RATE, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, bytes, true);
  return view.buffer;
}
