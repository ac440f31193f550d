"""Words that tell a rule, a decision or an open item from other sentences, in twelve languages.

A cue is a word, several words, or the beginning of a word with a star after it; commas separate them. Chinese and
Japanese cues may be anywhere. WISH cues count in sentences of the user alone: a negation or a "please" says little
in the prose of a model, and much in the words of the person it works for.

Cues come second. Who speaks, lists, check boxes, figures and quotations are recognised in every language (facts.py).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

from limpet.light import re
from limpet.record import NamedTuple

OPEN, DECISION, RULE, WISH = "open", "decision", "rule", "wish"
IN_ORDER = (OPEN, DECISION, RULE)  # a sentence with several kinds of cues is of the first of these

_SPACED: Mapping[str, Mapping[str, str]] = {
    "English": {
        OPEN: "todo, fixme, to do, still open, still missing, still need, still needs, still have to, "
        "still has to, still to, remaining, next step, next steps, next:, open question*, open item*, "
        "open point*, follow-up*, follow up*, not done, not finished, not yet, pending, waiting for, "
        "blocked, left to do, needs to be, need to clear, needs to clear, to be clarified, outstanding, "
        "unresolved, unfinished",
        DECISION: "decid*, decision*, chose, choose, chosen, agreed, settled, going with, opted, instead of, "
        "rather than, we'll use, we'll keep, we'll go, we'll take, we'll drop, we'll do, i'll use, "
        "i'll keep, i'll go, i'll take, i'll drop, i'll do, we will use, we will keep, we will go, "
        "we will take, we will drop, we will do, i will use, i will keep, i will go, i will take, "
        "i will drop, i will do, are going to use, are going to keep, approved, rejected, ruled out, "
        "the conclusion, in favour of, in favor of, we stick with, we are sticking with, replaces, picked, "
        "the choice",
        RULE: "must, mustn't, never, always, do not, don't, only ever, required, forbidden, not allowed, "
        "make sure, under no, shall, may not, prefer*, policy, rule, rules, no exception*, "
        "without exception*, at all costs, mandatory, prohibited, off limits, nobody, no one, "
        "under any circumstances, not acceptable, insist*",
        WISH: "please, should, shouldn't, want, need, keep, stay, stays, without, unless, only, not, no, avoid, "
        "leave, let's, instead, ask, call, tell, even if, even where, whatever, remember, careful, accept, "
        "ensure",
    },
    "German": {
        OPEN: "offen, offene, offener, offenen, ausstehend*, noch zu, fehlt noch, fehlen noch, noch fehlt, "
        "noch fehlen, noch nicht, muss noch, müssen noch, noch klären, zu klären, nächster schritt, "
        "nächste schritte, steht noch aus, stehen noch aus, unerledigt*, warten auf, wartet auf, blockiert, "
        "übrig bleibt, nicht fertig, ungeklärt, nachzuholen, noch offen, aufgabe:, aufgaben:, zu tun",
        DECISION: "entscheid*, entschied*, beschluss*, beschloss*, beschließ*, einigten, geeinigt, einigung, "
        "festgelegt, legen fest, steht fest, wir nehmen, nehmen wir, wir verwenden, verwenden wir, "
        "wir benutzen, benutzen wir, wir bleiben, bleiben wir, wählen, gewählt, wahl fiel, ausgewählt, "
        "statt, anstelle, stattdessen, verworfen, genehmigt, abgelehnt, fazit, löst ab, ersetzt, umgestellt, "
        "wir setzen auf, setzen wir auf, zugunsten, fällt weg, ausgeschieden",
        RULE: "muss, müssen, musst, darf, dürfen, darfst, niemals, nie, immer, stets, nur wenn, verboten, pflicht, "
        "vorschrift*, regel, regeln, unbedingt, keinesfalls, auf keinen fall, unter keinen umständen, "
        "niemand, ausnahmslos, ohne ausnahme, achte darauf, achtet darauf, sorge dafür, sorgt dafür, "
        "grundsätzlich, zwingend, nicht erlaubt, untersagt, verlangt, erforderlich, solange",
        WISH: "bitte, soll, sollen, sollst, sollte, will, möchte, brauche, brauchen, nicht, kein, keine, keinen, "
        "ohne, nur, lass, lasst, halte, haltet, behalte, vermeide, vermeidet, auch wenn, selbst wenn, bevor, "
        "ruf, frag, denk, vergiss, lieber, statt",
    },
    "Spanish": {
        OPEN: "pendiente*, falta, faltan, aún no, todavía no, todavía falta, queda por, quedan por, por hacer, "
        "hay que, próximo paso, próximos pasos, siguiente paso, sin terminar, sin resolver, sin acabar, "
        "a la espera, esperando, bloquead*, por aclarar, por decidir, tarea:, tareas:, tenemos que",
        DECISION: "decid*, decisión, acordamos, acordad*, acuerdo, elegimos, elegid*, elegir, escogimos, optamos, "
        "nos quedamos con, en lugar de, en vez de, descartad*, descartamos, aprobad*, rechazad*, usaremos, "
        "vamos a usar, utilizaremos, conclusión, sustituye, reemplaza, sustituirá, reemplazará, "
        "queda fijad*, se queda, pasa a, pasará a, resuelto",
        RULE: "debe, deben, debes, debéis, nunca, jamás, siempre, prohibid*, obligatori*, regla, reglas, norma, "
        "normas, bajo ningún, en ningún caso, sin excepción, sin excepciones, nadie, asegúrate, aseguraos, "
        "asegúrese, solo si, sólo si, no se puede, no se debe, no está permitido, imprescindible, "
        "es necesario, requisito*",
        WISH: "por favor, quiero, quisiera, necesito, debería, no, sin, solo, sólo, evita, evitad, mantén, "
        "mantened, aunque, antes de, deja, dejad, prefiero, mejor, recuerda, recordad, llama, avisa, "
        "pregunta, cuidado, salvo",
    },
    "French": {
        OPEN: "à faire, reste à, restent à, il reste, en attente, pas encore, à clarifier, à vérifier, "
        "il faut encore, il manque, manque encore, prochaine étape, prochaines étapes, non résolu*, "
        "inachevé*, bloqué*, à suivre, en suspens, question ouverte, questions ouvertes, tâche:, à terminer",
        DECISION: "décid*, décision*, convenu*, choisi*, choix, retenu*, on garde, nous gardons, on prend, "
        "nous prenons, plutôt que, au lieu de, écarté*, approuvé*, rejeté*, nous utiliserons, on utilisera, "
        "remplace, remplacera, conclusion, tranché, nous optons, opté, est acté",
        RULE: "doit, doivent, devez, dois, jamais, toujours, interdit*, obligatoire*, règle, règles, en aucun cas, "
        "sans exception, personne ne, il faut que, veillez à, veille à, assurez-vous, assure-toi, exigé*, "
        "impératif*, impérativement, sous aucun, uniquement si, n'est pas permis, défense de",
        WISH: "s'il te plaît, s'il vous plaît, veux, voudrais, souhaite, pas, ne, sans, seulement, évite, évitez, "
        "garde, gardez, même si, avant de, laisse, laissez, préfère, mieux, rappelle, appelle, demande, "
        "besoin, attention, faut, devrait, sauf",
    },
    "Portuguese": {
        OPEN: "pendente*, falta, faltam, ainda não, ainda falta, por fazer, a fazer, próximo passo, "
        "próximos passos, resta, restam, aguardando, à espera, bloquead*, por esclarecer, precisa ser, "
        "não concluíd*, em aberto, tarefa:, tarefas:, temos de, temos que",
        DECISION: "decid*, decisão, combinamos, combinad*, acordad*, acordo, escolhemos, escolhid*, escolha, optamos, "
        "ficamos com, em vez de, ao invés de, descartad*, aprovad*, rejeitad*, vamos usar, usaremos, "
        "substitui, substituirá, conclusão, ficou definid*, definimos, passa para",
        RULE: "deve, devem, nunca, jamais, sempre, proibid*, obrigatóri*, regra, regras, norma, "
        "em nenhuma hipótese, de modo algum, sem exceção, sem exceções, ninguém, certifique-se, garanta, "
        "somente se, só se, não é permitido, não pode, não podem, imprescindível, exigid*, é necessário",
        WISH: "por favor, quero, queria, preciso, deveria, não, sem, só, somente, evite, mantenha, mantenham, "
        "mesmo que, antes de, deixe, prefiro, melhor, lembre, ligue, pergunte, cuidado, salvo, exceto",
    },
    "Russian": {
        OPEN: "осталось, остаётся, остается, остались, ещё не, еще не, пока не, не хватает, не сделан*, не готов*, "
        "не закончен*, не решен*, не решён*, надо выяснить, нужно выяснить, надо проверить, нужно проверить, "
        "надо доделать, нужно доделать, надо будет, следующий шаг, следующие шаги, открытый вопрос, "
        "открытые вопросы, вопрос открыт, ждём, ждем, ожидаем, ожидает, заблокирован*, отложен*, предстоит, "
        "доделать, задача:",
        DECISION: "решил*, решен*, решён*, решаем, договорил*, выбрал*, выбран*, выбираем, берём, берем, остановил*, "
        "вместо, утвержден*, утверждён*, утвердил*, одобрен*, отклонен*, отклонён*, отвергнут*, итог, итоги, "
        "вывод, заменит, заменяет, заменим, будем использовать, используем, переходим, переносим, отказал*, "
        "определил*, в пользу",
        RULE: "должен, должна, должно, должны, обязан*, обязательно, никогда, всегда, нельзя, запрещ*, запрет, "
        "правило, правила, ни в коем случае, ни при каких, без исключений, никто не, никому не, следите, "
        "следи, убедись, убедитесь, требуется, требование, недопустимо, разрешено, разрешается, только если, "
        "строго",
        WISH: "пожалуйста, нужно, надо, хочу, хотелось бы, прошу, не, без, только, держите, держи, оставь, "
        "оставьте, избегай, избегайте, даже если, прежде чем, лучше, помни, помните, звони, звоните, спроси, "
        "спросите, осторожно, кроме, следует, стоит",
    },
    "Indonesian": {
        OPEN: "belum, masih perlu, masih harus, masih kurang, tersisa, sisa, tertunda, menunggu, "
        "langkah berikutnya, langkah selanjutnya, perlu dicek, perlu diperiksa, perlu dipastikan, "
        "perlu diklarifikasi, tugas:, terhambat, belum selesai, harus diselesaikan, pekerjaan rumah",
        DECISION: "diputuskan, memutuskan, putuskan, keputusan*, sepakat, disepakati, kesepakatan, memilih, dipilih, "
        "pilihan, kita pakai, kami pakai, kita gunakan, kami gunakan, akan memakai, akan menggunakan, "
        "daripada, alih-alih, disetujui, ditolak, kesimpulan*, menggantikan, diganti, beralih ke, pindah ke",
        RULE: "harus, wajib, jangan, tidak boleh, dilarang, larangan, selalu, tidak pernah, aturan, peraturan, "
        "pastikan, tanpa kecuali, tanpa pengecualian, hanya jika, hanya boleh, siapa pun, sama sekali, "
        "diharuskan, syarat",
        WISH: "tolong, mohon, silakan, ingin, mau, perlu, sebaiknya, tidak, bukan, tanpa, hanya, hindari, biarkan, "
        "meskipun, sebelum, ingat, hubungi, tanya, lebih baik, kecuali, simpan, tetap",
    },
    "Arabic": {
        OPEN: "لم يتم بعد, لم ينته*, لم نتمكن, لم أتمكن, ما زال, ما زالت, لا يزال, لا تزال, بقي, يبقى, تبقى, ينقص, "
        "تنقص, ناقص*, معلق*, مؤجل*, قيد الانتظار, بانتظار, في انتظار, الخطوة التالية, الخطوات التالية, "
        "غير مكتمل*, غير محلول*, علينا أن, نحتاج إلى, سؤال مفتوح, لاحقا, مهمة:",
        DECISION: "قررنا, قرر, قرار, القرار, تقرر, اتفقنا, اتفاق, تم الاتفاق, اخترنا, اختيار, اختار, سنعتمد, نعتمد, "
        "اعتمدنا, اعتماد, سنستخدم, سنستعمل, نستخدم, بدلا من, عوضا عن, تمت الموافقة, وافقنا, رفضنا, رفض, "
        "مرفوض, استبعد*, استبعدنا, النتيجة, الخلاصة, يحل محل, تحل محل, سيحل محل, ينتقل إلى, تنتقل إلى, حسم, "
        "استقر*",
        RULE: "يجب, ويجب, لا يجوز, ممنوع, يمنع, محظور, يحظر, أبدا, دائما, إياك, إياكم, لا بد, قاعدة, القاعدة, "
        "قواعد, بلا استثناء, دون استثناء, بدون استثناء, مهما كان, تحت أي ظرف, بأي حال, تأكد, تأكدوا, "
        "إلزامي*, مطلوب, شرط, لا أحد, غير مسموح, لا يسمح, فقط إذا, ضروري",
        WISH: "من فضلك, من فضلكم, رجاء, الرجاء, أريد, نريد, أرجو, ينبغي, لا, لن, بدون, دون, بلا, فقط, تجنب, "
        "تجنبوا, أبقوا, أبق, احتفظ*, حتى لو, حتى إذا, قبل, اترك, اتركوا, أفضل, تذكر, اتصل*, فاتصل, اسأل, "
        "إلا, انتبه",
    },
    "Hindi": {
        OPEN: "बाकी, बाक़ी, बचा है, बची है, बचे हैं, अभी तक नहीं, अब तक नहीं, अब भी, अधूरा, अधूरी, अधूरे, लंबित, "
        "रुका हुआ, इंतज़ार, इंतजार, प्रतीक्षा, अगला कदम, अगले कदम, करना है, करने हैं, करनी है, पता करना, "
        "जाँचना, जांचना, नहीं हुआ, नहीं हो पाया, छूट गया, काम:",
        DECISION: "तय, निर्णय, फ़ैसला, फैसला, चुना, चुनी, चुने, चुनाव, सहमति, सहमत, की जगह, के बजाय, के बदले, मंज़ूर, "
        "मंजूर, स्वीकृत, अस्वीकृत, नामंज़ूर, नामंजूर, ठुकरा*, हम लेंगे, ले रहे, इस्तेमाल करेंगे, उपयोग करेंगे, "
        "प्रयोग करेंगे, नतीजा, नतीजे, निष्कर्ष, परिणाम",
        RULE: "चाहिए, ज़रूरी, जरूरी, अनिवार्य, कभी, हमेशा, सदा, मत, मना, निषेध, निषिद्ध, वर्जित, नियम, हरगिज़, हरगिज, "
        "बिल्कुल नहीं, बिना अपवाद, कोई अपवाद, कोई छूट, हर बार, हर हाल, किसी भी हाल, किसी भी सूरत, सुनिश्चित, "
        "केवल तभी, अनुमति नहीं, पड़ेगा, पड़ेगी, आवश्यक, न करे, न करें",
        WISH: "कृपया, न, ना, नहीं, बिना, सिर्फ़, सिर्फ, केवल, रखो, रखना, रखें, बचो, बचें, चाहे, भले, पहले, छोड़ दो, "
        "बेहतर, याद, फ़ोन, फोन, पूछो, पूछना, स्वीकार, ध्यान, चाहता, चाहती, चाहते, करना, करो",
    },
    "Bengali": {
        OPEN: "বাকি, এখনও হয়নি, এখনো হয়নি, এখনও, এখনো, অসম্পূর্ণ, অসমাপ্ত, অপেক্ষা, অপেক্ষায়, পরবর্তী ধাপ, করতে হবে, "
        "দেখতে হবে, যাচাই করতে, ঝুলে, আটকে, কাজ:, মুলতুবি",
        DECISION: "সিদ্ধান্ত, ঠিক হয়েছে, ঠিক করেছি, ঠিক করা, বেছে, পছন্দ, একমত, পরিবর্তে, বদলে, অনুমোদ*, বাতিল, প্রত্যাখ্যান, "
        "ব্যবহার করব, নেব, ফলাফল, উপসংহার, জায়গায়",
        RULE: "অবশ্যই, কখনও, কখনো, সবসময়, সর্বদা, নিষেধ, নিষিদ্ধ, বাধ্যতামূলক, নিয়ম, ব্যতিক্রম, কোনোভাবেই, কোনোমতেই, "
        "নিশ্চিত, যাবে না, চলবে না, করবেন না, করবে না, কেউ যেন, শুধুমাত্র, প্রয়োজন",
        WISH: "দয়া, অনুগ্রহ, না, নয়, ছাড়া, শুধু, কেবল, রাখো, রাখুন, রাখবে, এড়িয়ে, চাই, দরকার, উচিত, আগে, মনে, ফোন, "
        "জিজ্ঞাসা, সাবধান, যদিও, বরং",
    },
}
_UNSPACED: Mapping[str, Mapping[str, str]] = {
    "Chinese": {
        OPEN: "待办, 待定, 待确认, 待处理, 待解决, 尚未, 尚待, 还没, 還沒, 还未, 還未, 还差, 還差, 还缺, 還缺, "
        "还需, 還需, 还要, 還要, 未完成, 没做完, 沒做完, 剩下, 下一步, 接下来要, 等待, 卡住, 遗留, 遺留, "
        "弄清, 搞清, 有待, 悬而未决",
        DECISION: "决定, 決定, 选定, 選定, 选择, 選擇, 选了, 選了, 选用, 選用, 采用, 採用, 改用, 就用, 敲定, 定下, "
        "定为, 定為, 商定, 达成一致, 說好, 说好, 同意, 批准, 否决, 否決, 拒绝, 放弃, 排除, 而不是, 代替, "
        "取代, 换成, 換成, 结论, 結論, 结果, 結果",
        RULE: "必须, 必須, 务必, 務必, 不得, 不要, 不能, 不许, 不許, 不准, 不可, 不允许, 禁止, 严禁, 嚴禁, 切勿, "
        "切忌, 绝不, 絕不, 绝对, 絕對, 千万, 千萬, 一律, 永远, 永遠, 总是, 始终, 始終, 规则, 規則, 规定, "
        "規定, 没有例外, 沒有例外, 除非, 只能, 只允许, 谁也别, 谁都别, 任何人, 都得, 都要, 确保, 確保, 要求",
        WISH: "请, 請, 希望, 需要, 应该, 應該, 没有, 沒有, 只有, 只要, 只用, 避免, 哪怕, 即使, 就算, 之前, 最好, "
        "记得, 記得, 记住, 打电话, 打電話, 小心, 注意, 凡是, 想要, 也别, 别再, 别让, 别把, 别用, 别去",
    },
    "Japanese": {
        OPEN: "未完, 未定, 未対応, 未解決, 未確認, 保留, 残って, 残り, 残る, まだ, これから, 次の手順, "
        "次のステップ, 待ち, 要確認, 確認が必要, 必要があります, 必要がある, やること, 宿題, 課題, "
        "終わってい, 済んでい, 足りない, 確かめる",
        DECISION: "決定, 決め, 決ま, ことにし, ことになり, ことになっ, 選び, 選ん, 選択, 採用, 合意, 却下, 承認, 見送, "
        "代わりに, ではなく, 結論, 結果, 置き換, 切り替え, に統一, やめて, やめま",
        RULE: "必ず, 絶対, 決して, 禁止, 禁じ, 厳禁, いけない, いけません, なりません, ならない, ねばなら, "
        "しないこと, ないこと, すること, してはな, 常に, いつも, 規則, ルール, 例外なく, 例外なし, 例外は, "
        "限り, 以外は, 場合のみ, ときだけ, 義務, 許可なく, だれも, 誰も, 守って, 徹底",
        WISH: "ください, 下さい, お願い, ほしい, 欲しい, たい, べき, ない, ません, ずに, なしで, だけ, のみ, 避け, "
        "たとえ, ても, でも, 前に, 覚えて, 電話, 聞いて, 注意, 気を付け, 気をつけ, 必要, 置いて",
    },
}

_KANA = re.compile("[\u3040-\u30ff]")
_STRICT = ("必ず", "必须", "必須", "务必", "務必", "禁止", "严禁", "嚴禁", "厳禁")  # always rules

# Signs that end or part words. Letters of every script, with their vowel signs, stay together.
_SIGNS = re.compile(r"[\s!\"#$%&()*+,./;<=>?@\[\\\]^_`{|}~\u00a1\u00a7\u00ab\u00b7\u00bb\u00bf\u060c\u061b\u061f"
                    r"\u0964\u0965\u06d4\u2010-\u2018\u201a-\u206f\u3000-\u303f\ufe30-\ufe4f]+")  # fmt: skip
_CLAUSE = re.compile(r"[,;:\u060c\u061b\u3001\u3002\uff0c\uff1b\uff1a]")
# Arabic vowels may be written or left out; the kashida stretches a word.
_ARABIC_MARKS = re.compile("[\u0640\u064b-\u0652]")
_DIGITS = {
    code: str(unicodedata.digit(chr(code)))
    for first in (0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50)
    for code in range(first, first + 10)
}


def fold(text: str) -> str:
    """A text as it is compared: without case, width, the script of its digits, and the vowels of Arabic."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_DIGITS).replace("\u2019", "'")
    return _ARABIC_MARKS.sub("", folded)


def has_unspaced(text: str) -> bool:
    """Whether it has letters of a script without spaces between words."""
    return not text.isascii() and _unspaced_letter().search(text) is not None


@lru_cache
def _unspaced_letter() -> re.Pattern[str]:
    # Sets of so many letters take milliseconds to compile, felt at every start.
    return re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@lru_cache(maxsize=8_192)
def pieces(text: str) -> frozenset[str]:
    """What sentences are compared by: words that follow each other, or letters in scripts without spaces."""
    parts: set[str] = set()
    for clause in _CLAUSE.split(fold(text)):
        words = _SIGNS.sub(" ", clause).split()
        parts.update(f"{first} {second}" for first, second in pairwise(words))
        parts.update(words if len(words) < 2 else ())
        if has_unspaced(clause):
            parts.update(first + second for word in words for first, second in pairwise(word))
    return frozenset(parts)


_FIRST_LETTERS = 3  # of the beginning of a word; all of them are as long


class _Index(NamedTuple):
    words: Mapping[str, frozenset[str]]  # a word: the kinds it is a cue of
    beginnings: Mapping[str, tuple[tuple[str, str], ...]]  # its first letters: the beginning of a word, and its kind
    phrases: Mapping[str, tuple[tuple[str, str], ...]]  # the first word: the whole cue between spaces, and its kind
    chinese: tuple[tuple[str, str], ...]
    japanese: tuple[tuple[str, str], ...]


@lru_cache
def _index() -> _Index:
    """Built when the first sentence is read: many starts read none."""
    words: dict[str, set[str]] = {}
    beginnings: dict[str, list[tuple[str, str]]] = {}
    phrases: dict[str, list[tuple[str, str]]] = {}
    for kind, cue in _cues(_SPACED.values()):
        first, _, more = cue.partition(" ")
        if more:
            # A star at the end of several words means any ending of the last one.
            phrases.setdefault(first.rstrip("*"), []).append(
                (f" {cue[:-1]}" if cue.endswith("*") else f" {cue} ", kind)
            )
        elif cue.endswith("*"):
            beginnings.setdefault(cue[:_FIRST_LETTERS], []).append((cue[:-1], kind))
        else:
            words.setdefault(cue, set()).add(kind)
    return _Index(
        {word: frozenset(kinds) for word, kinds in words.items()},
        {letters: tuple(cues) for letters, cues in beginnings.items()},
        {first: tuple(cues) for first, cues in phrases.items()},
        *(tuple((cue, kind) for kind, cue in _cues([_UNSPACED[name]])) for name in ("Chinese", "Japanese")),
    )


def _cues(languages: Iterable[Mapping[str, str]]) -> Iterable[tuple[str, str]]:
    return (
        (kind, fold(cue.strip()).replace(":", " :"))
        for kinds in languages
        for kind, cues in kinds.items()
        for cue in cues.split(",")
    )


def kinds(text: str) -> set[str]:
    """The kinds of cues in a sentence."""
    index, folded = _index(), fold(text)
    words = _SIGNS.sub(" ", folded.replace(":", " : ")).split()
    present: set[str] = set()
    for word in words:
        if cued := index.words.get(word):
            present |= cued
        if cued_beginnings := index.beginnings.get(word[:_FIRST_LETTERS]):
            present.update(kind for beginning, kind in cued_beginnings if word.startswith(beginning))
    if firsts := index.phrases.keys() & set(words):
        line = f" {' '.join(words)} "
        present.update(kind for first in firsts for cue, kind in index.phrases[first] if cue in line)
    if has_unspaced(folded):
        # The two share characters with different meanings; sentences with kana are Japanese.
        cues = index.japanese if _KANA.search(folded) else index.chinese
        present.update(kind for cue, kind in cues if cue in folded)
        if any(cue in folded for cue in _STRICT):
            present = {*present, RULE} - {DECISION}  # what must be approved or chosen is not approved or chosen yet
    return present
