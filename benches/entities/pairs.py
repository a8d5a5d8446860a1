"""Pairs of names, labelled as one entity or two, in two splits.

Rules were changed by errors of the development split.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

TYPES = {"P": "PERSON", "O": "ORG", "L": "PLACE", "J": "PROJECT", "R": "PRODUCT", "E": "EVENT", "N": "NAME"}


@dataclass(frozen=True)
class Pair:
    """Two names and their types."""

    left: str
    left_type: str
    right: str
    right_type: str
    same: bool


# The types of both, then the names.
_SAME_DEV = """
PP Alice Smith | alice smith
PP José García | Jose Garcia
PP Dr. Alice Smith | Alice Smith
PP A. Smith | Alice Smith
PP Alice M. Smith | Alice Smith
PP Bob Johnson | Robert Johnson
PP Bill Gates | William Gates
PP Liz Taylor | Elizabeth Taylor
PP Sasha Petrov | Aleksandr Petrov
PP Katya Ivanova | Ekaterina Ivanova
PP Paco Ruiz | Francisco Ruiz
PP Алексей Петров | Aleksey Petrov
PP Мария Иванова | Maria Ivanova
PP Σοφία Παπαδάκη | Sofia Papadaki
PP Smith, Alice | Alice Smith
PP J.R.R. Tolkien | John Ronald Reuel Tolkien
PP Łukasz Nowak | Lukasz Nowak
PP Müller, Jürgen | Juergen Mueller
PP Jürgen Müller | Jurgen Muller
PP Søren Kjær | Soeren Kjaer
PP Alice | Alice Smith
PP Okafor | Chidi Okafor
PP Jean-Luc Moreau | Jean Luc Moreau
PP Muhammad Ali | Mohammed Ali
PP Mohamed Salah | Mohammad Salah
PP Yusuf Demir | Yousuf Demir
PP @alice_smith | Alice Smith
PP Martin Luther King Jr. | Martin Luther King
PP Prof. Priya Raghunathan | Priya Raghunathan
PP Mike Chen | Michael Chen
OO Acme Corp | Acme Corporation
OO Acme Inc. | Acme
OO Nordwind GmbH | Nordwind
OO World Health Organization | WHO
OO International Business Machines | IBM
OO The Guardian | Guardian
OO Johnson & Johnson | Johnson and Johnson
OO University of Coimbra | Coimbra University
OO Massachusetts Institute of Technology | MIT
OO Procter & Gamble Co. | Procter & Gamble
LL New York City | New York
LL United States of America | USA
LL São Paulo | Sao Paulo
LL St. Petersburg | Saint Petersburg
LL Mt. Fuji | Mount Fuji
NP Alice Smith | Alice Smith
JJ Project Aurora | Aurora
JN Project Atlas | Atlas
RR iPhone 15 | iphone 15
EE PyCon 2024 | PyCon2024
"""
_DIFFERENT_DEV = """
PP Alice Smith | Alice Johnson
PP Alice Smith | Adam Smith
PP Alice Smith | Bob Smith
PP A. Smith | Bob Smith
PP John Smith | John Smythe-Jones
PP Maria Ivanova | Marina Ivanova
PP Jan Kowalski | Jan Kowalczyk
PP Robert Johnson | Roberta Johnson
PP Bob Johnson | Rob Jackson
PP Wei Zhang | Wei Chang
PP Min-jun Park | Min-ho Park
PP Anna Weber | Hanna Weber
PP Carlos Ruiz | Carla Ruiz
PP Martin Luther King Jr. | Martin Luther King Sr.
PP Daniel Craig | Craig Daniel
PP Paul Martin | Martin Paul
PP Alice | Alicia
PP Jordan Lee | Jordan Li
PP Chris Evans | Christine Evans
PP Sam Green | Sam Greene
PP George Bush | George W. Walker
PP J. Tanaka | Kenji Tanaka
PP Mohammed Ali | Mohammed Alvi
PP Lena Meyer | Lena Meyer-Landrut
PP Ann Lee | Anne Leigh
OO Acme Corp | Apex Corp
OO Bank of America | Bank of Africa
OO University of Coimbra | University of Lisbon
OO Delta Airlines | Delta Electronics
OO Red Cross | Red Hat
OO General Motors | General Mills
OO Tata Motors | Tata Steel
OO Imperial College London | King's College London
OO Acme Germany | Acme France
OO WHO | World Trade Organization
LL New York | New Jersey
LL Georgia | Georgetown
LL North Korea | South Korea
LL Paris | Parys
LL San Jose | San Juan
LP Jordan | Jordan Lee
LP Paris | Paris Hilton
PO Siemens | Werner von Siemens
RR iPhone 14 | iPhone 15
RR GPT-3 | GPT-4
RR Java | JavaScript
RR Windows 10 | Windows 11
EE PyCon 2023 | PyCon 2024
EE Berlin Marathon | Boston Marathon
JJ Project Aurora | Project Atlas
"""
_SAME_TEST = """
PP Hannah Weiss | HANNAH WEISS
PP Lucía Fernández | Lucia Fernandez
PP Mrs. Layla Haddad | Layla Haddad
PP H. Weiss | Hannah Weiss
PP Hannah K. Weiss | Hannah Weiss
PP Tom Baker | Thomas Baker
PP Kate Winslow | Katherine Winslow
PP Dick Turner | Richard Turner
PP Misha Volkov | Mikhail Volkov
PP Natasha Orlova | Natalia Orlova
PP Pepe Blanco | José Blanco
PP Kasia Zielińska | Katarzyna Zielińska
PP Дмитрий Волков | Dmitry Volkov
PP Андрей Коваленко | Andrei Kovalenko
PP Νίκος Γεωργίου | Nikos Georgiou
PP Weiss, Hannah | Hannah Weiss
PP C.S. Lewis | Clive Staples Lewis
PP Björn Lindqvist | Bjorn Lindqvist
PP Jörg Schäfer | Joerg Schaefer
PP Emre Yıldız | Emre Yildiz
PP Khadija | Khadija Benali
PP Morimoto | Takeshi Morimoto
PP Seo-yeon Kim | Seo Yeon Kim
PP Ahmed Hassan | Ahmad Hassan
PP Hussein Karim | Husain Karim
PP @declan.murphy | Declan Murphy
PP Sammy Davis Jr. | Sammy Davis
PP Captain Nomvula Dlamini | Nomvula Dlamini
PP Tony Russo | Anthony Russo
PP Peggy Olsen | Margaret Olsen
PP Jim O'Neill | James O’Neill
OO Initech Ltd | Initech Limited
OO Sturmfels AG | Sturmfels
OO Zephyr Robotics Inc. | Zephyr Robotics
OO European Space Agency | ESA
OO North Atlantic Treaty Organization | NATO
OO The Economist | Economist
OO Barnes & Noble | Barnes and Noble
OO University of Oslo | Oslo University
OO London School of Economics | LSE
OO Umbrella Holdings S.A. | Umbrella Holdings
LL Mexico City | Ciudad de México
LL United Arab Emirates | UAE
LL Gdańsk | Gdansk
LL St Andrews | Saint Andrews
NP Emeka Nwosu | Emeka Nwosu
NO Infosys | Infosys
JJ Project Nightingale | Nightingale
RR Open Telemetry | OpenTelemetry
EE World Cup 2022 | World Cup 2022
"""
_DIFFERENT_TEST = """
PP Hannah Weiss | Hannah Schwarz
PP Hannah Weiss | Heidi Weiss
PP H. Weiss | Karl Weiss
PP Michael Brown | Michaela Brown
PP Kim Lee | Lee Kim
PP Ivan Petrov | Ivana Petrova
PP Ivan Petrov | Igor Petrov
PP Dan Miller | Don Miller
PP Tim Cook | Tom Cook
PP Eric Moore | Erica Moore
PP Li Wei | Li Wen
PP Peter Müller | Peter Möller
PP Patrick Stewart | Patricia Stewart
PP Kenneth Branagh | Kendra Branagh
PP Joan Miró | Juan Miró
PP John Adams | John Quincy
PP Thomas Mann | Heinrich Mann
PP Ali Hassan | Hassan Ali
PP Clara | Clarissa
PP Ana Silva | Ana Salva
PP Sara Cohen | Sarah Kohn
PP Oliver Stone | Olivia Stone
PP Henry Adams Jr. | Henry Adams Sr.
PP F. Dlamini | Nomvula Dlamini
PP Anders Berg | Anders Bergman
OO Initech | Intertech
OO Bank of England | Bank of Ireland
OO University of Oxford | Oxford Brookes University
OO American Airlines | American Express
OO Silver Pine Studios | Silver Pine Records
OO Standard Oil | Standard Bank
OO General Electric | General Dynamics
OO Bosch Poland | Bosch Spain
OO ESA | European Southern Observatory
OO Mercy Hospital | Mercy College
LL York | New York
LL Niger | Nigeria
LL Sydney | Sidney Street
LL East Timor | West Timor
LL Santiago | San Diego
LP Florence | Florence Nightingale
LP Austin | Austin Powers
PO Ford | Henry Ford
RR Galaxy S22 | Galaxy S23
RR Python 2 | Python 3
RR Vue | Vuex
EE World Cup 2018 | World Cup 2022
EE Boston Marathon | London Marathon
JJ Project Mercury | Project Venus
JO Orion | Orion Holdings
"""


def pairs(split: Literal["dev", "test"]) -> list[Pair]:
    """The hundred pairs of a split."""
    same, different = (_SAME_DEV, _DIFFERENT_DEV) if split == "dev" else (_SAME_TEST, _DIFFERENT_TEST)
    return [*_read(same, same=True), *_read(different, same=False)]


def _read(table: str, *, same: bool) -> Iterator[Pair]:
    for line in table.strip().splitlines():
        kinds, _, names = line.partition(" ")
        left, right = names.split(" | ")
        yield Pair(left, TYPES[kinds[0]], right, TYPES[kinds[1]], same)
