// SPDX-License-Identifier: Apache-2.0
// Runs the script of a report without a browser, and says what it drew.
import vm from 'node:vm';

/** As much of an element as the page's script uses. */
class Element {
  html = '';
  children = [];

  set innerHTML(html) {
    this.html = html;
  }

  set textContent(text) {
    this.html = text;
  }

  get textContent() {
    return this.html;
  }

  get lastElementChild() {
    return this.last;
  }

  insertAdjacentHTML(_, html) {
    this.html += html;
    this.last = this.child();
  }

  child() {
    const one = new Element();
    this.children.push(one);
    return one;
  }

  append(one) {
    this.children.push(one);
  }

  querySelector() {
    return { addEventListener() {} };
  }

  /** All of its markup, that of its children included. */
  get all() {
    return [this.html, ...this.children.map((one) => one.all)].join('\n');
  }
}

/** {data, about, page} of a report: its data, its first line and all that it drew, as markup. */
export function openReport(html) {
  const scripts = [...html.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)];
  const data = scripts.find(([, attributes]) => attributes.includes('application/json'))[2];
  const elements = { data: new Element(), page: new Element(), about: new Element() };
  elements.data.textContent = data;
  const document = { getElementById: (id) => elements[id], createElement: () => new Element() };
  for (const [, attributes, text] of scripts) {
    if (!attributes) vm.runInNewContext(text, { document });
  }
  return { data: JSON.parse(data), about: elements.about.html, page: elements.page.all };
}
