// SPDX-License-Identifier: Apache-2.0
// Texts every tokenizer must agree on: languages, code, and what people and machines really send.

export const LANGUAGES = {
  english: `The night train left the harbour at a quarter past nine, and nobody on board knew that it wouldn't stop
before morning. "We've been here before," said Anna; she'd counted 1,204 lamps since O'Brien's bridge, and they'll
tell you she wasn't wrong. Costs rose by 3.75% to $12,999.00 (about €11,870) in 2024—mostly for coal, rope & tea.`,
  german: `Die Straßenbahn fährt über die große Brücke; hinter den Häusern wächst süßer Flieder. Fünf Füchse schlüpften
durchs Gebüsch, während Großmutter „Ärgerlich!“ rief. Die Donaudampfschifffahrtsgesellschaftskapitänsmütze kostete 49,90 €.`,
  french: `L'été dernier, l'œuvre de l'artiste n'était pas encore achevée : « Où êtes-vous allé ? » demanda-t-elle.
Aujourd’hui, qu’importe le garçon naïf, il reçoit ça à Noël. Le cœur a ses raisons ; 1 234,56 € suffisent.`,
  spanish: `¿Dónde está el niño? ¡Qué sorpresa! El pingüino comió jalapeños en la montaña durante la mañana, según él.`,
  russian: `Съешь же ещё этих мягких французских булок, да выпей чаю. В 1812 году всё было по-другому: «Ёлка» стояла
у окна, а за окном шёл снег. Электрификация продолжалась — с 9:00 до 18:30.`,
  greek: `Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Ο Σίσυφος ανέβαινε πάλι στο βουνό· «γιατί;» ρώτησε ο Οδυσσέας. ΌΛΟΣ Ο ΚΌΣΜΟΣ.`,
  chinese: `今天天气很好，我们一起去公园散步吧。人工智能正在改变世界，但是“理解”仍然是一个难题。《红楼梦》共一百二十回，约73万字；
價格是３００元，請問可以用信用卡付款嗎？繁體字與简体字混排，中间夹杂English单词和2024年12月31日。`,
  japanese: `吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。カタカナのテスト：コンピューター、ﾊﾝｶｸ文字。
「すみません、東京駅はどちらですか？」と聞いた。価格は１，２３４円です。`,
  korean: `다람쥐 헌 쳇바퀴에 타고파. 인공지능은 세상을 바꾸고 있습니다. 서울에서 부산까지 2시간 30분이 걸린다고 했어요! ㅋㅋㅋ`,
  arabic: `كان الرجل يمشي في السوق القديم، ثم قال: «هل رأيتَ الكِتابَ؟». السِّعْرُ ١٢٣٫٤٥ دينارًا، أي حوالي 150 دولارًا. مُحَمَّدٌ رسولٌ.`,
  hebrew: `בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ. שלום עולם! המחיר הוא 42.50 ₪ ב־3 תשלומים; צה״ל וארה״ב.`,
  hindi: `सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। क्या आप १२३ रुपये देंगे? क्षत्रिय, श्री, ज्ञान।`,
  thai: `ภาษาไทยไม่มีการเว้นวรรคระหว่างคำ แต่เว้นเมื่อจบประโยค ราคา ๑๒๓ บาท น้ำใจและความอดทนเป็นสิ่งสำคัญ`,
  vietnamese: `Tôi không biết tiếng Việt nhiều, nhưng tôi thích ăn phở và uống cà phê sữa đá ở Thành phố Hồ Chí Minh.`,
  turkish: `Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul'da ılık bir akşamdı; ışıklar söndü, IĞDIR'a gidildi.`,
  others: `Zażółć gęślą jaźń. Příliš žluťoučký kůň úpěl ďábelské ódy. Árvíztűrő tükörfúrógép. Þingvellir, Ærø, Ljubljana čšž.
ሰላም ለዓለም። გამარჯობა მსოფლიო. Բարեւ աշխարհ։ සිංහල අකුරු. தமிழ் எழுத்துகள். తెలుగు. ಕನ್ನಡ. മലയാളം. ខ្មែរ. မြန်မာ. བོད་ཡིག. ᠮᠣᠩᠭᠣᠯ. ᏣᎳᎩ. 𐌰𐌱𐌲 𒀀𒁀 𝔘𝔫𝔦𝔠𝔬𝔡𝔢.`,
};

export const CODE = {
  cpp: `#include <vector>\n// Sums what is there; returns 0 for nothing.\ntemplate <typename T>\nconstexpr auto sum(const std::vector<T>& values) -> T {\n\tT total{};\n\tfor (auto&& value : values) { total += value << 2; }  /* shifted */\n\treturn total;\n}\n\nint main(int argc, char** argv) {\r\n    std::printf("%d\\n", sum(std::vector<int>{1, 2, 0xFF, 1'000'000}));\r\n}\r\n`,
  python: `def fibonacci(n: int) -> list[int]:\n    """Return the first n numbers."""\n    a, b = 0, 1\n    out = []\n    while len(out) < n:\n        out.append(a)\n        a, b = b, a + b\n    return out\n\n\nif __name__ == '__main__':\n    print(f"{fibonacci(10)!r:>40}", *(x**2 for x in range(5)), sep='\\t')\n`,
  json: `{"name":"baton","version":"0.1.0","numbers":[1,-2,3.0e-10,null,true],"nested":{"a":{"b":{"c":[[],{}]}}},"text":"line\\nbreak \\u00e9 \\"quoted\\""}\n`,
  html: `<!DOCTYPE html>\n<html lang="en">\n  <head><meta charset="utf-8"><title>Tokens &amp; more</title></head>\n  <body class="a b-c" onclick="go('x')"><!-- note --><p>5 &lt; 6</p><br/></body>\n</html>\n`,
  rust: `fn main() -> Result<(), Box<dyn std::error::Error>> {\n    let xs: Vec<_> = (1..=10).filter(|x| x % 2 == 0).map(|x| x.pow(2)).collect();\n    println!("{:?} {}", xs, 'a'..='z');\n    Ok(())\n}\n`,
  shell: `set -euo pipefail; for f in "$HOME"/*.log; do grep -nE '^[0-9]{4}-[0-9]{2}' "$f" | awk -F: '{print $2}' >>out.txt 2>&1 || true; done\n`,
  sql: `SELECT u.id, COUNT(*) AS n FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.name LIKE '%O''Brien%' GROUP BY 1 HAVING n >= 10;\n`,
  latex: `\\begin{equation}\n  \\int_{-\\infty}^{\\infty} e^{-x^2}\\,dx = \\sqrt{\\pi}\n\\end{equation}\n`,
  markdown: `# Title\n\n* item **bold** _italics_ \`code\`\n  1. nested [link](http://localhost:8080/a?b=c&d=e#f)\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n> quote\n\n---\n`,
  log: `2024-03-09T12:34:56.789Z  WARN [worker-7] 10.0.0.1:54321 -> "GET /v1/models HTTP/1.1" 200 512 0.003s id=550e8400-e29b-41d4-a716-446655440000\n`,
};

export const ODDITIES = [
  '', ' ', '  ', '   ', '\n', '\n\n\n', '\r\n', '\r', '\t', '\t\t  \t', ' \n ', '\n \n', '  \n\n  x', 'x  \n\n', ' x', 'x ', '  x  ', 'a  b   c    d',
  '\u00a0', 'a\u00a0b', '\u3000你\u3000好\u3000', 'a\u2028b\u2029c', '\ufeffBOM', 'mixed \r\n line \n ends \r here\n\r\n\r', '\u000b\f\u0085\u001c\u001d\u001e\u001f',
  '\u200b\u200c\u200d\u2060', ' \u00a0 \u2003 \u3000 ', 'end with spaces     ', '     start with spaces', '\u2581', '▁▁', ' ▁ x ▁', 'a▁b',
  Array.from({ length: 33 }, (_, i) => String.fromCharCode(i)).join(''), Array.from({ length: 33 }, (_, i) => `x${String.fromCharCode(127 + i)}`).join(''),
  '0', '12', '123', '1234', '12345', '1234567', '9'.repeat(50), '3.14159265358979323846264338327950288', '1'.repeat(997), '٠١٢٣٤٥٦٧٨٩', '０１２３４５６７８９', '²³¹½¼', 'Ⅻⅻ', '一二三', '1a2b3c', '0x1F', '1_000', '1e-9',
  "I'm you're he's we've they'll she'd can't", "I'M YOU'RE HE'S WE'VE THEY'LL SHE'D CAN'T", "'s 't 're 've 'm 'll 'd", "''''", "x's's", "'ſ 'K", 'it’s', "l'", "'lLama", "'Rex",
  'é e\u0301 E\u0301 É', 'ç c\u0327', 'Å A\u030a Å', 'ñ n\u0303', 'ﬁ ﬂ ﬀ', '\u1100\u1161\u11a8 각', 'q\u0323\u0307 q\u0307\u0323', '\u0344 \u0340 \u0387', 'Ω Ω', '\u0958 क\u093c', '豈\u{2f800}', '\u0300alone', 'Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘',
  '😀😃😄', '👍🏻👍🏼👍🏽👍🏾👍🏿', '👩‍💻👨‍👩‍👧‍👦👩🏽‍🚀', '🏳️‍🌈🏴‍☠️🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}', '🇩🇪🇫🇷🇯🇵🇺🇳', '1️⃣2️⃣#️⃣', '☺☺️☺︎', '❤️‍🔥', 'a😀b 😀 c', '𝕳𝖊𝖑𝖑𝖔', '🫠🫡🩷',
  'abc אבג 123 דהו', 'مرحبا hello שלום', '\u202eright to left\u202c', '\u2066isolate\u2069', 'لا إله', 'ﷺ ﷽',
  'a'.repeat(1000), 'ab'.repeat(700), 'A'.repeat(333), ' '.repeat(1000), '\n'.repeat(500), '\t'.repeat(130), '-'.repeat(800), '=-'.repeat(400), '你'.repeat(600), 'あ'.repeat(300), '😀'.repeat(200), 'é'.repeat(400), 'supercalifragilisticexpialidocious'.repeat(20), '.'.repeat(97) + ' ' + '!'.repeat(61), ' a'.repeat(400),
  'http://example.com/path?x=1&y=%20#frag', 'user.name+tag@example.co.uk', 'C:\\Windows\\System32\\', '/usr/local/bin/../lib', '../../etc/passwd', '@handle #hashtag', 'A.B.C.', 'U.S.A.', 'i.e., e.g.', '(a)(b)', '[[1,2],[3]]', '{{x}}{%y%}', '<a><b/></a>', '$$$', '$a_1^2$', '100%', '50°C', '§5', '№7', '™®©',
  '\u0000', 'a\u0000b', '\ufffd', '\uffff\ufffe', '\u{10ffff}\u{10fffe}', '\ue000\uf8ff', '\u{f0000}', '\u{1fffe}', '\u{e0001}', '\u0378\u0379', '\u{323b0}',
];

// Texts without a place to cut them: what takes time in the square of the length shows here.
export function longTexts(random) {
  const letters = Array.from({ length: 60_000 }, () => random.of('etaoinshrdlu')).join('');
  return [letters, 'a'.repeat(60_000), ' '.repeat(60_000), '\n'.repeat(30_000), '7'.repeat(60_000), '=-'.repeat(30_000), '你好'.repeat(10_000), '😀'.repeat(10_000), '\u0301'.repeat(20_000), `${' '.repeat(20_000)}x${'\t'.repeat(20_000)}`];
}

// Texts between which nobody types anything but that users do send, made of a model's own added tokens.
export function lookAlikes(added) {
  const some = added.length <= 40 ? added : [...added.slice(0, 20), ...added.slice(-20)];
  const texts = [some.join(''), some.join(' '), some.join('\n'), some.join('x'), [...some].reverse().join('')];
  for (const token of some) {
    const units = Array.from(token);
    const half = units.length >> 1;
    texts.push(token, ` ${token}`, `${token} `, `  ${token}  `, `a${token}b`, `a ${token} b`, `\n${token}\n`, `${token}${token}`, `é${token}你`,
      token.toUpperCase(), token.toLowerCase(), units.slice(0, -1).join(''), units.slice(1).join(''), units[0] + token, token + units.at(-1),
      units.slice(0, half).join('') + token + units.slice(half).join(''), units.join(' '), units.join('\u200b'), `x\u0301${token}\u0301`, `\t${token}\u00a0${token}\u3000`);
  }
  return texts;
}

// Bytes that are not UTF-8, alone and amid good text.
export const NOT_UTF8 = [
  [0x80], [0xff], [0xc3], [0xc0, 0xaf], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98], [0xf4, 0x90, 0x80, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80],
  [0xe0, 0x80, 0xaf], [0xc1, 0xbf], [0xf0, 0x80, 0x80, 0x80], [0xfe, 0xff], [0x61, 0xc3, 0x28, 0x62], [...Buffer.from('good text, '.repeat(30)), 0xe9, 0x20, 0x62],
].map((bytes) => Buffer.from(bytes));

export const TEXTS = [...Object.values(LANGUAGES), ...Object.values(CODE)];
