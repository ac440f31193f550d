"""Words of correction in twelve languages, by what they do. Commas separate them; a cue may be several words."""

from __future__ import annotations

from collections.abc import Mapping

HEADING = "heading"  # "correction:"
CHANGE = "change"  # "now"
MOVE = "move"  # a change with the new value after it: "switched to"
BEFORE = "before"  # a contrast before the old value: "not 14"
AFTER = "after"  # … after it: "14 の代わりに"
BESIDE = "beside"  # … on either side: "no longer"
ADDITION = "addition"  # "also": no correction
CONDITION = "condition"  # "if": nothing is so yet
REASON = "reason"  # "because": what follows is not the fact

# Signs of Chinese and Japanese that join words or stand for one that says little.
IDLE = frozenset("的了吗嗎呢吧是我你您们們在和与與或为為请請のはがをにでとかも这這那个個")

# Numbers in words: values, however short they are.
NUMBERS = frozenset(
    [
        *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
        *("zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"),
        *("dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez", "once", "doce"),
        *("deux", "trois", "quatre", "cinq", "sept", "huit", "neuf", "dix", "onze", "douze"),
        *("два", "две", "три", "четыре", "пять", "шесть", "семь", "восемь", "девять", "десять"),
    ]
)

# The time before something, and after it: two texts on either side are about two times.
EARLIER = frozenset(["before", "vor", "bevor", "antes", "avant", "до", "перед", "sebelum", "前"])
LATER = frozenset(["after", "nach", "nachdem", "después", "tras", "après", "после", "setelah", "depois", "后"])

CUES: Mapping[str, Mapping[str, str]] = {
    "English": {
        HEADING: "correction, corrected, i was wrong, that was wrong, was wrong, is wrong, is outdated, "
        "out of date, erratum, scratch that, i mixed that up, my mistake, small fix, i misspoke, i misread, "
        "my bad, oops, the wrong line",
        CHANGE: "now, from now on, as of today, turned out to be, turns out, actually, in fact, these days, instead, "
        "since last week, since yesterday, since today, after all",
        MOVE: "changed to, has changed to, switched to, moved to, moved, switched, migrated to, migrated, upgraded to, "
        "updated to, replaced by, replaced with, renamed to, became, is being replaced by, rewritten in, raised to, "
        "lowered to, increased to, reduced to, bumped to, relocated to, swapped for",
        BEFORE: "not, instead of, rather than, in place of, no longer, from, used to be, previously, "
        "formerly, replaces, replaced, and not, forget the, isn't, aren't",
        BESIDE: "no longer, any longer, any more, anymore, is gone, was dropped, dropped, deprecated",
        ADDITION: "also, too, as well, in addition, additionally, besides, another",
        CONDITION: "if, would, unless, in case",
        REASON: "because, since, after, due to, so that, as the, which",
    },
    "German": {
        HEADING: "korrektur, berichtigung, richtigstellung, war falsch, ist falsch, stimmt nicht mehr, ist veraltet, "
        "ich hab mich vertan, ich habe mich vertan, ich habe mich geirrt, fehler von mir, mein fehler, "
        "moment, quatsch, ups, hoppla, falsch",
        CHANGE: "jetzt, nun, ab jetzt, ab sofort, inzwischen, mittlerweile, neuerdings, tatsächlich, eigentlich, "
        "seit heute, seit gestern, seit letzter woche, doch, nun doch, stattdessen, künftig, ab heute, "
        "erst ab, erst um, erst am, erst im, verschoben, umgezogen, umgestellt, gewechselt, verlegt",
        MOVE: "umgestellt auf, gewechselt zu, gewechselt auf, geändert auf, geändert in, ersetzt durch, "
        "abgelöst durch, umgezogen nach, umgezogen zu, umbenannt in, wurde auf, wurden auf, wurde zu, wurde nach, "
        "verschoben auf, verlegt auf, verlegt in, erhöht auf, gesenkt auf, heraufgesetzt auf, herabgesetzt auf",
        BEFORE: "nicht, nicht mehr, nicht länger, statt, anstatt, anstelle von, und nicht, früher, vorher, "
        "bisher, vergiss die, "
        "vergiss das, vergiss den",
        AFTER: "sondern",
        BESIDE: "nicht mehr, entfällt, abgeschafft, ist raus, sind raus",
        ADDITION: "auch, zusätzlich, außerdem, ebenfalls, daneben, weiterer, weitere, weiteres",
        CONDITION: "wenn, würde, würden, wäre, sobald",
        REASON: "weil, da, denn, nach, seit, wegen, damit",
    },
    "Spanish": {
        HEADING: "corrección, corregido, era incorrecto, es incorrecto, estaba mal, fe de erratas, me equivoqué, "
        "perdón, error mío, fe de errores, me confundí",
        CHANGE: "ahora, desde ahora, a partir de ahora, a partir de hoy, actualmente, en realidad, resulta que, "
        "finalmente, al final, ya estamos en, ya usamos, desde la semana pasada, desde ayer, desde hoy",
        MOVE: "cambió a, cambiado a, ha pasado a, hemos pasado, pasó a, pasamos a, migramos a, migrado a, "
        "reemplazado por, sustituido por, actualizado a, pasa al, pasa a, se ha migrado a, se movió a, "
        "se cambió a, renombrado a, subió a, bajó a, aumentó a",
        BEFORE: "no, ya no, en vez de, en vez del, en lugar de, en lugar del, y no, antes, anteriormente, "
        "olvida lo de las, olvida lo de, olvida",
        AFTER: "sino",
        BESIDE: "ya no, dejó de, dejamos de",
        ADDITION: "también, además, asimismo, otro, otra",
        CONDITION: "si, sería",
        REASON: "porque, ya que, desde que, tras, debido a, para que",
    },
    "French": {
        HEADING: "correction, rectification, rectificatif, c'était faux, était faux, est faux, "
        "je me suis trompé, je me suis trompée, erreur de ma part, mon erreur, oups, faux",
        CHANGE: "maintenant, désormais, dorénavant, à présent, à partir de maintenant, en fait, en réalité, "
        "finalement, depuis la semaine dernière, depuis hier, depuis aujourd'hui",
        MOVE: "passé à, passe à, passée à, est passé à, est passée à, passé sur, passée sur, migré vers, "
        "migrée vers, remplacé par, remplacée par, changé pour, passés à, passées à, réécrit en, réécrite en, "
        "déplacé à, déplacée à, renommé en, renommée en, porté à, portée à",
        BEFORE: "pas, et non, au lieu de, au lieu du, au lieu des, plutôt que, à la place de, avant, "
        "auparavant, oubliez, oublie",
        BESIDE: "ne plus, n'est plus, ne sont plus, plus utilisé, plus le, plus la, plus les, plus sur, plus dans, "
        "abandonné",
        ADDITION: "aussi, également, en plus, de plus, en outre, autre",
        CONDITION: "si, serait",
        REASON: "parce que, car, depuis que, après, à cause de, afin de",
    },
    "Portuguese": {
        HEADING: "correção, corrigido, estava errado, está errado, errata",
        CHANGE: "agora, a partir de agora, a partir de hoje, atualmente, na verdade, desde ontem, desde hoje",
        MOVE: "mudou para, mudamos para, passou para, passou a, passamos a, migramos para, substituído por, "
        "substituída por, atualizado para, renomeado para",
        BEFORE: "não, já não, não mais, em vez de, em vez do, em vez da, ao invés de, no lugar de, e não, antes, "
        "anteriormente",
        BESIDE: "já não, não mais, deixou de",
        ADDITION: "também, além disso, adicionalmente, outro, outra",
        CONDITION: "caso, seria",
        REASON: "porque, pois, já que, desde que, após, devido a",
    },
    "Russian": {
        HEADING: "исправление, поправка, уточнение, было неверно, неверно, ошибка была, я ошибся, ошибся, ошиблась, "
        "я перепутал, я перепутала, "
        "я ошиблась, моя ошибка, оговорился",
        CHANGE: "теперь, сейчас, отныне, стал, стала, стало, "
        "на самом деле, оказалось, всё-таки, все-таки, уже на, с прошлой недели, со вчерашнего дня, "  # noqa: RUF001 - Russian
        "с сегодняшнего дня",  # noqa: RUF001 - Russian
        MOVE: "перешли на, переехали на, переехал на, заменён на, заменен на, изменён на, изменен на, обновлён до, "
        "обновлен до, обновились до, обновили до, переехали в, переехал в, переехала в, перешёл на, перешла на, "
        "перенесли на, переписали на, перевели на, переименован в, переименовали в",
        BEFORE: "не, а не, и не, вместо, раньше, прежде",  # noqa: RUF001 - Russian
        BESIDE: "больше не, уже не, отменён, отменен",
        ADDITION: "также, тоже, ещё, еще, кроме того, дополнительно",
        CONDITION: "если, бы",
        REASON: "потому что, так как, поскольку, после, из-за, чтобы",
    },
    "Indonesian": {
        HEADING: "koreksi, ralat, perbaikan, salah, keliru",
        CHANGE: "sekarang, kini, mulai sekarang, mulai hari ini, ternyata",
        MOVE: "pindah ke, beralih ke, berubah menjadi, diubah menjadi, diganti dengan, diganti menjadi, diperbarui ke",
        BEFORE: "bukan, bukan lagi, tidak lagi, alih-alih, daripada, dan bukan, sebelumnya",
        BESIDE: "tidak lagi, bukan lagi, tak lagi",
        ADDITION: "juga, selain itu, tambahan, lain",
        CONDITION: "jika, kalau",
        REASON: "karena, sejak, setelah, sebab, agar",
    },
    "Arabic": {
        HEADING: "تصحيح, تصويب, كان خطأ, كان خاطئا",
        CHANGE: "الآن, حاليا, من الآن, منذ اليوم, أصبح, أصبحت, انتقلنا إلى, تغير إلى, استبدل ب, "
        "تم تغييره إلى, في الواقع",
        BEFORE: "وليس, ليس, لا, بدلا من, عوضا عن, سابقا",
        BESIDE: "لم يعد, لم تعد, لم نعد",
        ADDITION: "أيضا, كذلك, بالإضافة",
        CONDITION: "إذا, لو",
        REASON: "لأن, بسبب, بعد, منذ",
    },
    "Hindi": {
        HEADING: "सुधार, संशोधन, शुद्धि, गलत था, ग़लत था",
        CHANGE: "अब, अब से, आज से, बदलकर, बदल कर, बदल गया, असल में, दरअसल",
        AFTER: "की जगह, के बजाय, के बदले, नहीं, से बदलकर",
        BESIDE: "अब नहीं, नहीं रहा, नहीं रही",
        ADDITION: "भी, साथ ही, इसके अलावा",
        CONDITION: "अगर, यदि",
        REASON: "क्योंकि, चूँकि, के बाद, के कारण",
    },
    "Bengali": {
        HEADING: "সংশোধন, সংশোধনী, ভুল ছিল",
        CHANGE: "এখন, এখন থেকে, আজ থেকে, বদলে গেছে, পরিবর্তিত হয়ে, আসলে",
        AFTER: "এর পরিবর্তে, পরিবর্তে, এর বদলে, বদলে, নয়, এর জায়গায়",
        BESIDE: "আর নয়, আর না",
        ADDITION: "ও, এছাড়া, পাশাপাশি",
        CONDITION: "যদি",
        REASON: "কারণ, যেহেতু, পরে",
    },
    "Chinese": {
        HEADING: "更正, 纠正, 糾正, 勘误, 之前说错, 有误, 我说错了, 说错了, 我弄错了, 弄错了, 记错了",
        CHANGE: "现在, 現在, 从现在起, 目前, 如今, 其实, 实际上, 最后, 从上周起, 从昨天起, 从今天起",
        MOVE: "改为, 改為, 改成, 改用, 变成, 变为, 搬到, 搬去, 迁到, 调到, 换到, 升级成, 升级为, "
        "换成, 換成, 迁移到, 遷移到, 升级到, 升級到, 更新为, 更新為, 改到, 改在, 改由",
        BEFORE: "而不是, 不是, 不再是, 不再, 代替, 取代, 从, 從, 原来是, 之前是, 已经不",
        BESIDE: "已弃用, 已停用, 作废",
        ADDITION: "也, 还有, 還有, 另外, 此外",
        CONDITION: "如果, 假如, 要是",
        REASON: "因为, 因為, 由于, 由於, 之后",
    },
    "Japanese": {
        HEADING: "訂正, 修正, 間違い, 誤り",
        CHANGE: "今は, 現在は, これからは, 今後は, に変更, へ変更, に切り替え, へ移行, に移行, "
        "になりました, に更新, 実は, 実際には",
        AFTER: "ではなく, の代わりに, に代わって, から",
        BESIDE: "もはや, はもう",
        ADDITION: "も, さらに, また, 加えて",
        CONDITION: "もし",
        REASON: "なぜなら, のため, ので",
    },
}
