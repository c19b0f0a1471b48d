"use strict";
/* The page of the playground: it asks its own server, and nobody else, and shows what it is told. */

const find = (id) => document.getElementById(id);
const HAS = {
  stranger: "Has the morphed files, and other pictures of the same kind.",
  finder: "Has the files and the augmented layer; not the weights of the network.",
  developer: "Has what the protocol hands over: files, augmented layer, and its own first layer.",
  injector: "Also knows one other picture of the delivery.",
};
const NAMES = { stranger: "the stranger", finder: "whoever finds the delivery", developer: "the developer",
                injector: "a developer who knows one picture" };
let offered = null;
let turn = 0; // of the morphing: an answer to an earlier one is not shown
let draw = 0;

/** Ask the server; a refusal becomes an error with its sentence. */
async function ask(what, body) {
  let answer;
  try {
    answer = await fetch(what, { method: "POST", body });
  } catch {
    throw new Error("The playground does not answer: it has ended. Start it again with mole playground.");
  }
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.error || "That did not work: the playground could not answer.");
  return told;
}

/** An element with its classes, text and children. */
function made(tag, { className = "", text = null, ...rest } = {}, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  Object.assign(element, rest);
  element.append(...children);
  return element;
}

function show(image, told) {
  image.src = told.src;
  image.alt = told.alt;
}

const picture = () => document.querySelector("input[name=picture]:checked");
const chosen = (name) => document.querySelector(`input[name=${name}]:checked`).value;
const kind = () => picture().dataset.kind;
const sizes = () => offered.sizes[kind()][chosen("layout")];
const size = () => sizes()[Number(find("size").value)];
const bits = () => offered.bits[Number(find("bits").value)];
const score = (told) => `SSIM ${told.ssim.toFixed(3)}, PSNR ${told.psnr.toFixed(1)} dB`;
const percent = (share) => (share === 1 ? "100 %" : `${(100 * share).toFixed(1)} %`);

/** Set what the sliders say, and how far they go. */
function name_sizes() {
  const tiles = chosen("layout") === "tiles";
  const slider = find("size");
  slider.max = sizes().length - 1;
  const elements = offered.elements[kind()];
  const times = tiles ? elements / (offered.channels[kind()] * size() ** 2) : size();
  const core = elements / times;
  const text = tiles ? `${size()} x ${size()} pixels: ${times} tiles, one core of ${core} x ${core}`
    : `${size()}: a core of ${core.toLocaleString("en")} x ${core.toLocaleString("en")}, used ${size() === 1 ? "once" : `${size()} times`}`;
  find("size-label").textContent = tiles ? "Side of a tile" : "kappa";
  find("size-text").textContent = text;
  slider.setAttribute("aria-valuetext", text);
}

function name_bits() {
  const text = `${bits()} ${bits() === 1 ? "bit" : "bits"}`;
  find("bits-text").textContent = text;
  find("bits").setAttribute("aria-valuetext", text);
}

/** Only the latest wish is carried out, and one at a time: what came between is forgotten. */
function latest(work) {
  let running = false;
  let waiting = false;
  const is_stale = () => waiting;
  return async function wish() {
    if (running) { waiting = true; return; }
    running = true;
    do {
      waiting = false;
      try {
        await work(is_stale);
        find("error").textContent = "";
      } catch (error) {
        find("error").textContent = error.message;
        find("state").textContent = "";
        document.querySelectorAll("[aria-busy=true]").forEach((part) => part.setAttribute("aria-busy", "false"));
      }
    } while (waiting);
    running = false;
  };
}

const busy = (element, is) => element.setAttribute("aria-busy", String(is));

async function morph(is_stale) {
  const mine = ++turn;
  const wish = { picture: picture().value, layout: chosen("layout"), size: size(), core: chosen("core"), draw };
  find("state").textContent = "Working it out ...";
  busy(find("look"), true);
  document.querySelectorAll(".card").forEach((card) => busy(card, true));
  const told = await ask("look", JSON.stringify(wish));
  for (const name of ["plain", "morphed", "maps"]) show(document.querySelector(`[data-img=${name}]`), told[name]);
  find("best-map").textContent = told.best_map.toFixed(2);
  find("unseen").textContent = score(told.mean);
  busy(find("look"), false);
  find("costs").replaceChildren(...told.costs.map((one) => made("div", {},
    made("dt", { text: one.what }),
    made("dd", {}, made("span", { className: "value", text: one.value }), made("div", { className: "remark", text: one.remark })))));
  if (is_stale()) return;
  const found = {};
  await Promise.all(Object.keys(offered.attackers).map(async (attacker) => {
    found[attacker] = await ask("attack", JSON.stringify({ ...wish, attacker }));
    if (mine === turn) rebuilt(attacker, found[attacker]);
  }));
  if (mine !== turn) return;
  find("headline").textContent = headline(found);
  const slowest = Math.max(...Object.values(found).map((one) => one.seconds || 0));
  find("state").textContent = `Done: morphed in ${told.took.toFixed(2)} s; the slowest attack took ${slowest.toFixed(2)} s.`;
}

function rebuilt(attacker, told) {
  const card = find(`attacker-${attacker}`);
  const [image, badge, scores, words] = ["img", ".badge", ".scores", ".words"].map((part) => card.querySelector(part));
  if (told.src) show(image, told);
  image.hidden = !told.src;
  badge.className = `badge ${told.level}`;
  badge.textContent = told.verdict;
  scores.textContent = told.src ? score(told) : "";
  words.textContent = told.words;
  busy(card, false);
}

/** Who gets how far, in a sentence. */
function headline(found) {
  const by = {};
  for (const attacker of Object.keys(offered.attackers)) (by[found[attacker].verdict] ||= []).push(NAMES[attacker]);
  const parts = Object.entries(by).map(([verdict, who]) => {
    const list = who.length > 1 ? `${who.slice(0, -1).join(", ")} and ${who.at(-1)}` : who[0];
    return verdict === "not tried" ? `${list} could not try` : `${list} ${who.length > 1 ? "get" : "gets"} ${verdict}`;
  });
  const text = parts.join("; ");
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}

async function protect() {
  busy(find("protected"), true);
  const told = await ask("protect", JSON.stringify({ picture: picture().value, bits: bits() }));
  show(document.querySelector("[data-img=row]"), told.row);
  show(document.querySelector("[data-img=decoded]"), told.rebuilt);
  show(document.querySelector("[data-img=picked]"), told.picked);
  find("row-words").textContent = `${told.features} noisy numbers, ${told.bytes}: noise of sigma ${told.sigma.toPrecision(3)} on features of length 1.`;
  find("decoded-words").textContent = `The best linear map, learned from other pictures: ${told.rebuilt.verdict}. ${score(told.rebuilt)}. ` +
    `The mean of all pictures, whatever the row: ${score(told.mean)}.`;
  find("picked-words").textContent = `Which of ${told.picked.candidates.toLocaleString("en")} pictures fits best: this one, which is ` +
    `${told.picked.right ? "right" : "wrong"}. Over all of them, ${percent(told.picked.share)} are picked right.`;
  find("certificate").textContent = `The certificate: at most ${Number(told.bits.toPrecision(3))} ${told.bits.toPrecision(3) === "1.00" ? "bit" : "bits"} ` +
    `a picture on average, whoever looks; nobody picks the right one of ${told.picked.candidates.toLocaleString("en")} ` +
    `equally likely pictures more often than in ${percent(told.picked.most)} of all cases.`;
  busy(find("protected"), false);
}

const wish_morph = latest(morph);
const wish_protect = latest(protect);

function thumbnail(one) {
  const radio = made("input", { type: "radio", name: "picture", value: one.id });
  radio.dataset.kind = one.kind;
  const image = made("img", { alt: "" });
  image.src = one.src;
  return made("label", {}, radio, image, made("span", { text: one.name }));
}

/** Take a file: the server cuts it, and forgets it in the end. */
async function bring(file) {
  const error = find("upload-error");
  error.textContent = "";
  if (!file) return;
  if (file.size > offered.most_bytes) {
    error.textContent = `This is more than ${(offered.most_bytes / 1e6).toFixed(1)} MB: choose a smaller file.`;
    return;
  }
  try {
    const label = thumbnail(await ask("picture", file));
    document.querySelector("#pictures label.own")?.remove();
    label.classList.add("own");
    find("pictures").append(label);
    find("size").value = 0;
    label.querySelector("input").checked = true;
    new_picture();
  } catch (problem) {
    error.textContent = problem.message;
  }
}

function new_picture() {
  name_sizes();
  wish_morph();
  wish_protect();
}

function listen() {
  find("controls").addEventListener("submit", (event) => event.preventDefault());
  find("pictures").addEventListener("change", () => { find("size").value = 0; new_picture(); });
  find("layouts").addEventListener("change", () => { find("size").value = 0; name_sizes(); wish_morph(); });
  find("cores").addEventListener("change", wish_morph);
  find("size").addEventListener("input", () => { name_sizes(); wish_morph(); });
  find("another").addEventListener("click", () => { draw = (draw + 1) % 1000; wish_morph(); });
  find("bits").addEventListener("input", () => { name_bits(); wish_protect(); });
  find("noise").addEventListener("click", wish_protect);
  find("file").addEventListener("change", (event) => { bring(event.target.files[0]); event.target.value = ""; });
  const drop = find("drop");
  const over = (is) => (event) => { event.preventDefault(); drop.classList.toggle("over", is); };
  for (const name of ["dragenter", "dragover"]) document.addEventListener(name, over(true));
  document.addEventListener("dragleave", over(false));
  document.addEventListener("drop", (event) => { over(false)(event); bring(event.dataTransfer.files[0]); });
}

async function start() {
  try {
    offered = await ask("welcome", "");
  } catch (error) {
    find("error").textContent = error.message;
    return;
  }
  find("side").textContent = `${offered.side} x ${offered.side}`;
  find("pictures").append(...offered.pictures.map(thumbnail));
  document.querySelector("input[name=picture]").checked = true;
  find("attackers").append(...Object.entries(offered.attackers).map(([name, who]) => {
    const card = made("li", { className: "card", id: `attacker-${name}` },
      made("h3", { text: who }), made("p", { className: "has", text: HAS[name] }), made("img", { alt: "" }),
      made("p", { className: "badge", text: "working" }), made("p", { className: "scores" }), made("p", { className: "words" }));
    return card;
  }));
  find("bits").max = offered.bits.length - 1;
  find("bits").value = offered.bits.indexOf(1);
  find("size").value = 0;
  name_bits();
  listen();
  new_picture();
}

start();
