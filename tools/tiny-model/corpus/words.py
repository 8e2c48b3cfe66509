"""Word lists of the corpus, and made-up words.

Every list was written for this project; nothing is copied from another corpus. The order of a list
is part of the corpus: a seed picks words by their index.
"""

import random

NAMES = """Anna Ben Clara David Elena Felix Greta Hugo Iris Jonas Kara Leo Mila Nils Olga Paul Rosa
Sven Tara Uma Viktor Wanda Xenia Yara Zeno Ada Boris Carla Dora Emil Fiona Gus Hanna Ivan Julia
Karl Lena Max Nora Oscar Petra Quinn Ralf Sofia Tom Ursula Vera Willa Yusuf Zoe Amir Bela Chen Dina
Eva Farid Gina Hiro Ines Jack Kim Lars Maya Noah Otto Pia Ravi Sam Tess Vik Lucy Mark Nina Peter
Sara Alice Bob Martha Henry Ruth Simon Laura Victor Emma Liam Olivia Daniel Grace Frank Helen Igor
Jane""".split()
COLOURS = """red blue green yellow purple orange pink brown black white grey silver gold teal
violet crimson amber ivory turquoise scarlet indigo maroon""".split()
ANIMALS = """fox owl bear cat dog rabbit hedgehog mouse otter crow horse goat sheep duck swan frog
turtle badger squirrel deer wolf heron robin beaver mole bee snail lion tiger whale""".split()
OBJECTS = """lantern key map bell book coin ring clock kite boat basket drum flute candle hat scarf
mirror bottle stone feather box letter ladder umbrella compass needle button spoon cup blanket rope
wheel pencil hammer violin teapot jar pillow bucket ribbon""".split()
PLACES = """forest river village harbour mountain garden bridge tower market meadow island valley
cave lake castle library mill lighthouse station orchard desert beach farm school bakery museum
""".split()
CITIES = """Oslo Paris Rome Berlin Madrid Lisbon Vienna Prague Dublin Athens Cairo Tokyo Delhi Lima
Quito Boston Denver Toronto Sydney Helsinki Warsaw Zagreb Bergen Geneva Milan Porto Riga Seoul
London Kyoto""".split()
FRUITS = """apple pear plum cherry grape lemon orange peach melon fig banana mango kiwi apricot
quince strawberry raspberry blueberry""".split()
FOODS = """bread soup rice pasta cheese salad cake pancakes honey porridge beans pie noodles
potatoes dumplings omelette""".split()
JOBS = """baker teacher sailor farmer doctor painter gardener writer carpenter tailor pilot nurse
cook shepherd clockmaker librarian""".split()
ADJECTIVES = """small old quiet bright brave kind clever gentle lonely curious tired happy patient
proud shy strange warm cold golden silver broken heavy light tiny large round soft sharp slow quick
clean dusty empty full hidden lost new plain pretty rough sad silent simple smooth strong sweet
tall thin wide wild wise young""".split()
VERBS = """walk run sing wait look find carry open close follow build draw write read climb jump
swim fly sleep wake turn move hold keep give take bring send call ask answer count listen learn
lift paint plant pull push ride rest sail search show smile speak stand start stop talk teach think
touch travel visit wash watch work""".split()
NOUNS = """door window table chair house street road hill tree leaf flower grass rain snow wind
cloud sun moon star night morning evening winter summer spring autumn water fire earth sky sea ship
train wagon field fence gate wall roof floor room kitchen bed lamp paper ink song story word number
question answer friend child mother father brother sister neighbour king queen hand eye heart voice
shadow silence hour minute day week month year dream journey path corner edge middle piece sound
smell colour shape line circle square bag coat shoe pocket glass plate knife fork bowl milk tea
coffee sugar salt butter egg engine signal server memory token thread buffer packet river mountain
""".split()
FUNCTION_WORDS = """the a of and to in is on it with for as at by from or but not this that we you
he she they was are be have had very just still again never always only then when where there here
now""".split()
CONTENT_WORDS = sorted(
    set(ANIMALS + OBJECTS + PLACES + FRUITS + FOODS + JOBS + ADJECTIVES + VERBS + NOUNS + COLOURS)
)

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = """January February March April May June July August September October November December
""".split()
ALPHABET = "abcdefghijklmnopqrstuvwxyz"

# No merge of the tokenizer covers these: each character is several tokens.
GREEK_LETTERS = "α β γ δ ε ζ η θ ι κ λ μ ν ξ ο π ρ σ τ υ φ χ ψ ω".split()
CYRILLIC_LETTERS = "а б в г д е ж з и й к л м н о п р с т у ф х ц ч ш щ ы э ю я".split()
EMOJI = "😀 🎉 🌍 🚀 🐢 🍎 🎵 🔔 🌙 ⭐ 🔥 🌈 🐱 🐶 🦊 🌲 🏠 📚 🎈 ☕".split()
FOREIGN_WORDS = """café naïve déjà crème über straße größe mañana niño coração São ålesund
smørrebrød žába čaj łódź λόγος κόσμος θάλασσα ουρανός φίλος мир привет книга дорога вода лес солнце
日本 東京 音楽 山 川 水 火 木 花 鳥 空 海 你好 世界 谢谢 朋友 学习 안녕 나라 ありがとう こんにちは さくら""".split()

SYLLABLES = """ba be bi bo bu da de di do du fa fe fi fo ga go gu ha he hi ho ja jo ka ke ki ko ku
la le li lo lu ma me mi mo mu na ne ni no nu pa pe pi po pu ra re ri ro ru sa se si so su ta te ti
to tu va ve vi vo wa we wi ya yo za ze zi zo zu bren dor fal gim hult jark kel lom mirn nost pral
quin rast sond tarv ulm vex wint yarl zand thor shal chen stel grop plim cran drus""".split()


def made_up_word(rng: random.Random, syllables_min: int = 2, syllables_max: int = 3) -> str:
    """A word that is in no list, so that copying is learned and not a vocabulary."""
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(syllables_min, syllables_max)))


def person_name(rng: random.Random) -> str:
    """A first name of the list, or (two times in five) a made-up one."""
    return rng.choice(NAMES) if rng.random() < 0.6 else made_up_word(rng).capitalize()


def with_article(noun: str) -> str:
    """The noun after "a" or "an"."""
    return ("an " if noun[0] in "aeiou" else "a ") + noun
