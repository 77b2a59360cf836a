/** The page: asks the model for each sentence and shows what can be computed from its layers. */

import { readAddress, writeAddress } from "./address.js";
import { Refused, servedVersion, Unreachable } from "./api.js";
import { Connection } from "./connection.js";
import { element, onThemeChange } from "./dom.js";
import { Editors } from "./editors.js";
import { EXAMPLES, examplesFor } from "./examples.js";
import { loadModel } from "./model.js";
import { renderPrediction } from "./prediction.js";
import { chooseMissing, Sentence } from "./sentence.js";
import { VectorViews } from "./vector_views.js";

const TYPING_PAUSE = 300;
const LANGUAGES = new Intl.DisplayNames("en", { type: "language" });

/** The name of a language; of what is no code of one, that itself. */
function nameOf(language) {
  try {
    return LANGUAGES.of(language);
  } catch {
    return language;
  }
}

const byId = (id) => document.getElementById(id);
const said = byId("said");

let model = null;
let sentences = [];
// The address as this page wrote it; another one was typed or followed, and is about to be read.
let address = location.hash;
const timers = new Map();

const editors = new Editors(byId("editors"), {
  typed: (sentence) => {
    later(sentence, sentence.isEmpty ? 0 : TYPING_PAUSE, () => ask(sentence));
    showEditors();
  },
  chosen: (sentence) => {
    show();
    // The place is an input of a labeller of semantic roles.
    if (model.takesPlace) later(sentence, TYPING_PAUSE, () => ask(sentence));
  },
  removed: (sentence) => {
    sentence.forget();
    sentences = sentences.filter((other) => other !== sentence);
    show();
    editors.focusLast();
  },
});
const views = new VectorViews({ later, attempt, say });
const connection = new Connection(look, {
  lost: () => {
    byId("lost").hidden = false;
    showEditors();
  },
  back: () => {
    byId("lost").hidden = true;
    say("The server answers again.");
    askAll();
  },
});

/** Looks whether the server is there, and whether it serves what it did. */
async function look() {
  if (!model || (await servedVersion(model.name).catch(gone)) !== model.version) await load();
}

/** Another model may be served at this address by now; whatever else it is, is thrown on. */
function gone(error) {
  if (error instanceof Refused) return null;
  throw error;
}

async function load() {
  model = await loadModel();
  for (const sentence of sentences) sentence.forget();
  describe();
  views.setModel(model);
  if (!sentences.length) {
    const example = fromExample(examplesFor(model.description.language)[0]);
    sentences = readAddress(location.hash) ?? example;
    while (sentences.length < model.texts.length) sentences.push(new Sentence());
  }
  askAll();
}

/** Runs what asks the server; what it refuses is told, and what nobody answers is asked again by `askAll`. */
async function attempt(work, refused) {
  if (connection.isLost) return;
  try {
    await work();
  } catch (error) {
    if (error instanceof Unreachable) connection.lose();
    else if (error instanceof Refused) refused(error.message);
    else throw error;
  }
}

/** One timer for each key: only the last of several calls is carried out. */
function later(key, pause, work) {
  clearTimeout(timers.get(key));
  timers.set(key, setTimeout(work, pause));
}

function say(text) {
  if (text) said.textContent = text;
}

async function ask(sentence) {
  if (!model || model.unfit) return;
  showEditors();
  await attempt(
    () => sentence.ask(model),
    (message) => {
      sentence.forget();
      sentence.error = `The model refused this sentence: ${message}`;
      sentence.asked = sentence.text;
    },
  );
  show();
}

function askAll() {
  show();
  for (const sentence of sentences) if (!sentence.isCurrent) ask(sentence);
}

/** What the whole page shows, from what is known now. */
function show() {
  if (!model) return;
  chooseMissing(sentences);
  showEditors();
  if (location.hash === address) {
    history.replaceState(null, "", writeAddress(sentences));
    address = location.hash;
  }
  const answered = sentences.map((sentence, k) => ({ sentence, number: k + 1 })).filter(({ sentence }) => sentence.answer);
  const settled = sentences.every((sentence) => sentence.isCurrent);
  if (model.hasVectors) views.render(answered, settled);
  else if (model.isHead) showPrediction(answered, settled);
}

function showEditors() {
  if (!model) return;
  editors.render(sentences, {
    names: model.texts.length > 1 ? model.texts.map((name) => name[0].toUpperCase() + name.slice(1)) : [],
    choosing: model.hasVectors || model.takesPlace,
    extending: model.hasVectors,
    busy: !connection.isLost,
  });
  byId("add").hidden = model.texts.length > 1;
  const note = byId("language");
  note.textContent = otherLanguage();
  note.hidden = !note.textContent;
}

function showPrediction(answered, settled) {
  const section = byId("prediction");
  section.hidden = false;
  section.classList.toggle("stale", !settled);
  const speak = (answers) => say(renderPrediction(section, answers));
  if (model.texts.length === 1) {
    speak(answered.map(({ sentence, number }) => ({ title: `Sentence ${number}`, outputs: sentence.answer.prediction })));
    return;
  }
  const row = Object.fromEntries(model.texts.map((name, k) => [name, sentences[k]?.text ?? ""]));
  if (Object.values(row).some((text) => !text.trim())) {
    renderPrediction(section, []);
    return;
  }
  later("pair", 0, () =>
    attempt(
      async () => {
        const outputs = await model.predict(row);
        if (model.texts.every((name, k) => sentences[k]?.text === row[name])) speak([{ title: model.texts.join(", "), outputs }]);
      },
      (message) => (section.querySelector(".body").textContent = `The model refused this: ${message}`),
    ),
  );
}

/** Who is served, and which parts of the page it is for. */
function describe() {
  const { name, version, description } = model;
  const language = description.language ? `, ${nameOf(description.language)}` : "";
  const about = description.description ? ` ${description.description}` : "";
  byId("model").textContent = `Model ${name}, version ${version}${language}.${about}`;
  byId("unfit").textContent = model.unfit;
  byId("unfit").hidden = !model.unfit;
  const can = {
    vectors: model.hasVectors,
    substitutes: model.hasSubstitutes,
    characters: model.readsWords,
    prediction: model.isHead,
  };
  for (const part of document.querySelectorAll("[data-for]")) {
    // Sections come with their first answer.
    if (!can[part.dataset.for] || part.matches("p")) part.hidden = !can[part.dataset.for];
  }
  const buttons = examplesFor(description.language).map((example) => {
    const name = `${example.name} (${nameOf(example.language)})`;
    return element("button", { type: "button", lang: example.language, onclick: () => setExample(example) }, name);
  });
  byId("examples").replaceChildren(...buttons);
}

/** A word with a model that has not read its language means little. */
function otherLanguage() {
  const { language } = model.description;
  const text = sentences.map((sentence) => sentence.text).join("");
  const other = /\p{Script=Han}/u.test(text) ? "zh" : "en";
  const bundled = EXAMPLES.some((example) => example.language === language);
  if (!text.trim() || !bundled || other === language || (other === "en" && !/[a-z]/i.test(text))) return "";
  return (
    `This model has read ${nameOf(language)} only: its vectors for other languages mean little. ` +
    `keras-elmo demo --model elmo_tiny_${other} has read ${nameOf(other)}.`
  );
}

function fromExample(example) {
  const count = model.texts.length > 1 ? model.texts.length : example.sentences.length;
  views.setInvented(example.invented);
  return example.sentences.slice(0, count).map((text) => new Sentence(text, null, example.word));
}

function setExample(example) {
  for (const sentence of sentences) sentence.forget();
  sentences = fromExample(example);
  askAll();
}

byId("add").addEventListener("click", () => {
  sentences.push(new Sentence());
  showEditors();
  editors.focusLast();
});
byId("retry").addEventListener("click", () => connection.check());
addEventListener("hashchange", () => {
  address = location.hash;
  sentences = readAddress(location.hash) ?? sentences;
  askAll();
});
onThemeChange(show);
connection.start();
connection.check();
