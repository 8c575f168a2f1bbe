/** Money, tokens, tasks and time, drawn by uPlot while the run goes on. */
import { html, useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { clock, count, duration, money } from "../format.js";
import { Empty } from "../parts.js";

const HEIGHT = 200;

/** @typedef {{label: string, values: (number | null)[], tone: string, fill?: boolean, dash?: boolean, steps?: boolean, bars?: boolean}} Series */

/** @param {{recap: any}} props */
export function Charts({ recap }) {
  const plot = useUplot();
  const { points, iterations } = recap;
  if (!points.length && !iterations.length) return html`<${Empty} title="There is nothing to draw yet." />`;
  if (!plot) return html`<p class="soft">Drawing…</p>`;
  const moments = points.map((/** @type {any} */ point) => point.time);
  const most = recap.spent.max_dollars;
  const last = points[points.length - 1];
  return html`
    <div class="charts">
      ${last?.dollars > 0 && html`<${Chart} plot=${plot} title="Money" words=${`${money(last.dollars)}${most ? ` of ${money(most)}` : ""}`}
        x=${moments} show=${money} series=${[
          { label: "spent", values: points.map((/** @type {any} */ p) => p.dollars), tone: "accent", fill: true, steps: true },
          ...(most ? [{ label: "limit", values: moments.map(() => most), tone: "bad", dash: true }] : []),
        ]} />`}
      ${last?.tokens_in + last?.tokens_out > 0 && html`<${Chart} plot=${plot} title="Tokens" words=${`${count(last.tokens_in)} in, ${count(last.tokens_out)} out`}
        x=${moments} show=${count} series=${[
          { label: "in", values: points.map((/** @type {any} */ p) => p.tokens_in), tone: "accent", fill: true, steps: true },
          { label: "out", values: points.map((/** @type {any} */ p) => p.tokens_out), tone: "ask", steps: true },
        ]} />`}
      ${last && last.open !== null && html`<${Chart} plot=${plot} title="Tasks" words=${`${last.done} done, ${last.open} open`}
        x=${moments} show=${whole} series=${[
          { label: "done", values: points.map((/** @type {any} */ p) => p.done), tone: "good", fill: true, steps: true },
          { label: "open", values: points.map((/** @type {any} */ p) => p.open), tone: "warn", steps: true },
        ]} />`}
      ${iterations.length > 0 && html`<${Chart} plot=${plot} title="Time per iteration" words=${timeWords(iterations)}
        x=${iterations.map((/** @type {any} */ _, /** @type {number} */ at) => at + 1)} isCount show=${duration}
        series=${stacked(iterations)} />`}
    </div>`;
}

/** @param {number} number */
const whole = (number) => (Number.isInteger(number) ? String(number) : "");

const SHORT = 900; // seconds in which minutes say too little

/** @param {number[]} times */
const times = (times) =>
  times.map((time) => clock(time).slice(0, times[times.length - 1] - times[0] < SHORT ? 8 : 5));

/** @param {any[]} iterations */
function timeWords(iterations) {
  const sum = (/** @type {string} */ part) => iterations.reduce((all, one) => all + one[`${part}_seconds`], 0);
  return `agent ${duration(sum("agent"))}, gates ${duration(sum("gate"))}, waiting ${duration(sum("wait"))}`;
}

/** Bars that stand on each other: the whole one is drawn first, then less of it. @param {any[]} iterations @returns {Series[]} */
function stacked(iterations) {
  const of = (/** @type {(one: any) => number} */ value) => iterations.map(value);
  return [
    { label: "waiting", values: of((one) => one.agent_seconds + one.gate_seconds + one.wait_seconds), tone: "wait", bars: true },
    { label: "gates", values: of((one) => one.agent_seconds + one.gate_seconds), tone: "gates", bars: true },
    { label: "agent", values: of((one) => one.agent_seconds), tone: "agent", bars: true },
  ];
}

/**
 * @param {{plot: any, title: string, words: string, x: number[], series: Series[],
 *          show: (value: number) => string, isCount?: boolean}} props
 */
function Chart({ plot, title, words, x, series, show, isCount = false }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const chart = useRef(/** @type {any} */ (null));
  const data = [x, ...series.map((one) => one.values)];
  const current = useRef(data);
  current.current = data;

  useEffect(() => {
    const box = /** @type {HTMLElement} */ (place.current);
    const draw = () => {
      chart.current?.destroy();
      chart.current = new plot(options(plot, box.clientWidth, series, show, isCount), current.current, box);
    };
    draw();
    const resizing = new ResizeObserver(() => chart.current?.setSize({ width: box.clientWidth, height: HEIGHT }));
    resizing.observe(box);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => {
      resizing.disconnect();
      dark.removeEventListener("change", draw);
      chart.current?.destroy();
    };
  }, [series.length]);
  useEffect(() => chart.current?.setData(data), [x.length, x[x.length - 1], series[0].values[x.length - 1]]);
  return html`
    <figure class="chart card">
      <figcaption><h2>${title}</h2><span>${words}</span>
        <span class="legend">${series.map((one) => html`<span key=${one.label}><i class=${`swatch is-${one.tone} ${one.dash ? "is-dash" : ""}`} />
          ${one.label}</span>`)}</span></figcaption>
      <div class="plot" ref=${place} role="img" aria-label=${`${title}: ${words}`}></div>
    </figure>`;
}

/** @param {any} plot @param {number} width @param {Series[]} series @param {(value: number) => string} show @param {boolean} isCount */
function options(plot, width, series, show, isCount) {
  const style = getComputedStyle(document.documentElement);
  const color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const axis = { stroke: color("soft"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false } },
    scales: {
      x: { time: !isCount, ...(isCount && { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [low - 0.6, high + 0.6] }) },
      y: { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [0, high * 1.08 || 1] },
    },
    axes: [
      { ...axis, size: 32, values: (/** @type {any} */ _, /** @type {number[]} */ at) => (isCount ? at.map(whole) : times(at)) },
      { ...axis, size: 64, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map(show) },
    ],
    series: [
      {},
      ...series.map((one) => ({
        label: one.label,
        stroke: color(one.tone),
        width: one.bars ? 0 : 2,
        points: { show: false },
        ...(one.dash && { dash: [6, 5] }),
        ...(one.fill && { fill: `color-mix(in srgb, ${color(one.tone)} 14%, transparent)` }),
        ...(one.bars && { fill: color(one.tone), paths: plot.paths.bars({ size: [0.7, 40] }) }),
        ...(one.steps && { paths: plot.paths.stepped({ align: 1 }) }),
      })),
    ],
  };
}

/** uPlot, once it is here: only this page takes it. */
function useUplot() {
  const [plot, setPlot] = useState(() => /** @type {any} */ (window).uPlot);
  useEffect(() => {
    if (plot) return;
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/static/vendor/uPlot.min.css" });
    const script = Object.assign(document.createElement("script"), { src: "/static/vendor/uPlot.iife.min.js" });
    script.onload = () => setPlot(() => /** @type {any} */ (window).uPlot);
    document.head.append(style, script);
  }, []);
  return plot;
}
