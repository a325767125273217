// Checks a report in a browser by WCAG 2.2 AA: contrast, keyboard and, with `#print`, paper. Appends a list of faults.
const faults = [];
const fail = (element, fault) => faults.push(`${element.localName}.${element.classList} "${element.textContent.trim().slice(0, 30)}": ${fault}`);
const style = (element) => getComputedStyle(element);

const channels = (color) => color.match(/[\d.]+/g).map(Number);
const luminance = (color) => {
    const [r, g, b] = channels(color).map((part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
};
const background = (element) => {
    if (!element) return "rgb(255, 255, 255)";
    if (element.localName === "svg") return style(element.querySelector("rect")).fill;
    const color = style(element).backgroundColor;
    return channels(color)[3] === 0 ? background(element.parentElement) : color;
};
const check = (element, what, color, required) => {
    const found = contrast(color, background(element.closest("svg") ?? element));
    if (found < required) fail(element, `the contrast of ${what} is ${found.toFixed(2)}, but must be ${required}`);
};

// A headless window may not be the active one, so an attribute stands for the focus.
for (const sheet of document.styleSheets) {
    for (const { selectorText, style } of [...sheet.cssRules].filter((rule) => rule.selectorText?.includes(":focus-visible"))) {
        sheet.insertRule(`${selectorText.replaceAll(":focus-visible", "[data-focus]")} { ${style.cssText} }`, sheet.cssRules.length);
    }
}

// Paper: the rules for print apply, and those for a screen do not.
const print = location.hash === "#print";
if (print) {
    for (const sheet of document.styleSheets) {
        for (const rule of [...sheet.cssRules].filter((rule) => rule.media?.mediaText.includes("print")).flatMap((rule) => [...rule.cssRules])) {
            sheet.insertRule(rule.cssText, sheet.cssRules.length);
        }
        for (let n = sheet.cssRules.length; n--;) if (sheet.cssRules[n].media?.mediaText.includes("screen")) sheet.deleteRule(n);
    }
    if (luminance(background(document.body)) < 0.9) fail(document.body, "paper is dark");
    for (const element of document.querySelectorAll("table, svg")) {
        if (element.getBoundingClientRect().right > innerWidth + 1) fail(element, "it is wider than paper");
    }
}

let texts = 0;
for (const element of document.querySelectorAll("body *:not(script, style, title, desc)")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!hasText || !element.getClientRects().length) continue;
    const { color, fill, fontSize, fontWeight } = style(element);
    const isLarge = parseFloat(fontSize) >= (fontWeight >= 700 ? 18.66 : 24);
    check(element, "text", element.closest("svg") ? fill : color, isLarge ? 3 : 4.5);
    texts += 1;
}
for (const mark of document.querySelectorAll("circle")) check(mark, "a mark", style(mark).stroke, 3);

// Keyboard: whatever scrolls takes the focus, shows it, and has a name.
const isFolded = (element) => element.localName !== "summary" && element.closest("details:not([open])");
const regions = [...document.querySelectorAll("*")].filter((element) => element.tabIndex >= 0 && !isFolded(element));
for (const element of document.querySelectorAll("body *")) {
    const scrolls = element.scrollWidth > element.clientWidth && /auto|scroll/.test(style(element).overflowX);
    if (scrolls && element.tabIndex < 0) fail(element, "it scrolls, but not with the keyboard");
}
for (const region of regions) {
    region.focus();
    region.dataset.focus = "";
    const { outlineStyle, outlineWidth, outlineColor } = style(region);
    if (document.activeElement !== region) fail(region, "it does not take the focus");
    if (outlineStyle === "none" || parseFloat(outlineWidth) < 2) fail(region, "its focus does not show");
    check(region, "the focus", outlineColor, 3);
    const label = region.getAttribute("aria-label") ?? document.getElementById(region.getAttribute("aria-labelledby"))?.textContent;
    // A summary has its words as its name.
    if (region.localName !== "summary" && (!label || !region.role)) fail(region, "it has no name or no role");
}

for (const image of document.querySelectorAll("svg")) if (image.role !== "img" || !image.querySelector("title")) fail(image, "it has no title");
for (const header of document.querySelectorAll("th")) if (!header.scope) fail(header, "it has no scope");
for (const part of ["html[lang]", "main", "h1", "h2"]) if (!document.querySelector(part)) faults.push(`there is no ${part}`);
if (texts < 50 || regions.length < 3) faults.push(`there are ${texts} texts and ${regions.length} regions`);

const list = document.createElement("pre");
list.id = "faults";
list.textContent = faults.length ? faults.join("\n") : `no faults of ${texts} texts`;
document.body.append(list);
