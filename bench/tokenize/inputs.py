# SPDX-License-Identifier: Apache-2.0
"""Texts to tokenize, the same in every run of a commit: its own pages and sources, and made-up Chinese."""

import random
import re

MEGABYTE = 1_000_000
SIZES = {"1 kB": 1_000, "90 kB": 90_000, "1 MB": MEGABYTE}

# Words that the Chinese text is made of. Nothing separates them, so their sequence is what a tokenizer sees.
CHINESE = """
我们 他们 你 我 的 了 在 是 有 和 不 这 那 个 人 大 中国 时间 世界 问题 工作 生活 学习 研究 发展 技术 系统 数据 模型 语言 计算 网络 服务 用户 信息 管理
经济 社会 文化 历史 教育 科学 环境 市场 公司 政府 国家 城市 地方 方法 结果 过程 情况 关系 作用 影响 能力 水平 条件 基础 内容 形式 目标 任务 计划 项目
可以 能够 应该 需要 希望 认为 知道 发现 开始 进行 提高 增加 减少 改变 建立 使用 利用 分析 处理 解决 支持 要求 保证 实现 完成 继续 参加 组织 提供 产生
非常 特别 主要 重要 一般 不同 相同 新 旧 高 低 好 多 少 长 短 快 慢 今天 明天 昨天 早上 晚上 春天 夏天 秋天 冬天 天气 阳光 月亮 河流 山 海 花 树 鸟 鱼
因为 所以 但是 如果 虽然 而且 或者 以及 关于 对于 根据 通过 随着 为了 除了 之间 以后 以前 同时 已经 正在 将 曾经 总是 从来 也许 大概 确实 當然 電腦 資料
""".split()
MARKS = ["，"] * 6 + ["。"] * 4 + ["、", "；", "：", "？", "！", "”“", "（", "）", "\n\n"]
SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu bra cle dri flo gru stra ther ing tion".split()


def made_up_word(chance):
    return "".join(chance.choice(SYLLABLES) for _ in range(chance.randint(2, 4)))


def shuffled(chance, parts, least):
    """Parts in ever new order until there are enough, now and then with a word nobody has seen: real text has a
    long tail too, and what remembers words must not find all of them."""
    out, size = [], 0
    while size < least:
        for part in chance.sample(parts, len(parts)):
            words = part.split(" ")
            for _ in range(max(1, len(words) // 40)):
                words[chance.randrange(len(words))] = made_up_word(chance)
            out.append(" ".join(words))
            size += len(part)
    return "".join(out)


def english(root):
    pages = [page.read_text() for page in sorted((root / "docs").glob("*.md"))]
    return shuffled(random.Random(1), re.split(r"(?<=[.:;]\s)", "\n".join(pages)), 2 * MEGABYTE)


def code(root):
    files = sorted([*(root / "src").rglob("*.cc"), *(root / "src").rglob("*.h")])
    blocks = [block + "\n\n" for file in files for block in file.read_text().split("\n\n")]
    return shuffled(random.Random(2), blocks, 2 * MEGABYTE)


def chinese(_):
    chance = random.Random(3)
    out = []
    for _ in range(MEGABYTE // 6):
        out += chance.choices(CHINESE, k=chance.randint(2, 9))
        if chance.random() < 0.1:
            out.append(chance.choice([" tokenizer ", "GPU", "2024年", str(chance.randrange(10_000)), " the model "]))
        out.append(chance.choice(MARKS))
    return "".join(out)


TEXTS = {"English": english, "code": code, "Chinese": chinese}


def slices(text, size):
    """A megabyte of text in pieces of so many bytes."""
    data = text.encode()
    if len(data) < MEGABYTE:
        raise ValueError(f"{len(data)} bytes of text are too few")
    return [data[at:at + size].decode(errors="ignore") for at in range(0, MEGABYTE - size + 1, size)]


def sentences(root, count, size):
    """So many pieces of English for a conversation."""
    return slices(english(root), size)[:count]
