// Where sound comes from. Each returns {rate, live, begin(hear, ended), stop()}; `hear` gets floats.
// `begin` may be called twice. What is live is heard from the beginning on, whether a server is ready or not,
// and has `pause(yes)`, during which it is silent.
import { keepRunning } from "./running.js";
import { UNREACHABLE, at } from "./socket.js";

const NO_TABS = "This browser does not share the sound of a tab, as those of phones do not, nor where the page "
  + "came without encryption. Use the microphone or a file, or a browser on a computer, over https.";
const TOO_OLD = "This browser cannot hear sound while it comes. Use a newer one, or translate a file.";

// `headphones`: nothing of the interpreter's voice comes back, so the sound is left as it is.
export async function microphone(deviceId, headphones) {
  const audio = {
    channelCount: 1,
    echoCancellation: !headphones,
    noiseSuppression: false,
    autoGainControl: true,
    ...(deviceId && { deviceId: { exact: deviceId } }),
  };
  return tapped(await navigator.mediaDevices.getUserMedia({ audio }));
}

// The sound of another tab, or of the whole screen where the browser offers that.
export async function tab() {
  if (!navigator.mediaDevices?.getDisplayMedia) throw new Error(NO_TABS);
  const stream = await navigator.mediaDevices.getDisplayMedia({
    video: { frameRate: 1 }, // browsers want a picture, too; nobody looks at it
    audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false },
    selfBrowserSurface: "exclude", // this tab would hear itself
  });
  if (!stream.getAudioTracks().length) {
    stream.getTracks().forEach((track) => track.stop());
    throw new Error("No sound was shared. Choose a tab and tick “Also share tab audio”.");
  }
  return tapped(stream);
}

async function tapped(stream) {
  const context = new AudioContext();
  let rest = () => {};
  const stop = () => {
    rest();
    stream.getTracks().forEach((track) => track.stop());
    context.close();
  };
  await context.resume();
  rest = keepRunning(context);
  if (!context.audioWorklet) {
    stop();
    throw new Error(TOO_OLD);
  }
  try {
    await context.audioWorklet.addModule(at("/page/worklet.js"));
  } catch {
    stop();
    throw new Error(UNREACHABLE);
  }
  const tap = new AudioWorkletNode(context, "tap", { numberOfOutputs: 0 });
  context.createMediaStreamSource(stream).connect(tap);
  return {
    rate: context.sampleRate,
    live: true,
    begin(hear, ended) {
      tap.port.onmessage = ({ data }) => hear(data);
      stream.getAudioTracks()[0].onended = () => ended("The sound has ended: the device or the tab is gone.");
    },
    pause(yes) {
      for (const track of stream.getAudioTracks()) track.enabled = !yes;
    },
    stop,
  };
}

const RATE = 16000;

// A recording, as fast as somebody speaks.
export async function recording(file) {
  const sound = await decoded(file);
  let heard = 0;
  let ticker = null;
  return {
    rate: RATE,
    live: false,
    begin(hear, ended) {
      if (ticker) return;
      const zero = performance.now();
      ticker = new Worker(at("/page/ticker.js"));
      ticker.onerror = () => ended(UNREACHABLE);
      ticker.onmessage = () => {
        const due = Math.min(sound.length, Math.round((RATE * (performance.now() - zero)) / 1000));
        for (; heard < due; heard += RATE) hear(sound.subarray(heard, Math.min(due, heard + RATE)));
        heard = due;
        if (heard === sound.length) ended("");
      };
    },
    stop() {
      if (!ticker) return;
      ticker.onmessage = null; // what it has said already, too
      ticker.terminate();
    },
  };
}

async function decoded(file) {
  let sound;
  try {
    sound = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await file.arrayBuffer());
  } catch {
    throw new Error("This browser cannot read that file. Try WAV, MP3, M4A or OGG.");
  }
  const channels = [...Array(sound.numberOfChannels).keys()].map((i) => sound.getChannelData(i));
  if (channels.length === 1) return channels[0];
  return channels[0].map((_, i) => channels.reduce((sum, one) => sum + one[i], 0) / channels.length);
}
