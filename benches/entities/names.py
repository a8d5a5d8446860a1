"""Names for the slots of the templates; the two splits share none."""

from __future__ import annotations

DEV: dict[str, tuple[str, ...]] = {
    "p": (
        "Alice Smith", "Kenji Tanaka", "Łukasz Nowak", "Chidi Okafor", "Fatima Zahra Bennani", "Priya Raghunathan",
        "Jean-Luc Moreau", "Søren Kjær", "Ngozi Adeyemi", "María del Carmen Ruiz", "Wei Zhang", "Dimitris Papadakis",
        "Olena Shevchenko", "Thabo Mokoena", "Yusuf Demir", "Aoife O'Brien", "João Batista Pereira", "Min-jun Park",
    ),
    "f": (
        "Mara", "Tobias", "Amina", "Hiroshi", "Svetlana", "Kwame", "Ines", "Rohan", "Zoë", "Mehmet", "Lerato",
        "Siobhan",
        "Nguyen", "Ludmila", "Omar", "Freya",
    ),
    "o": (
        "Siemens", "Acme Corp", "University of Coimbra", "Nordwind GmbH", "Tata Motors", "Red Cross",
        "Blue Harbor Labs",
        "Kestrel Systems", "St. Mary's Hospital", "Banco Atlântico", "Lagos Philharmonic", "Riverside Bakery",
        "Helios Energy", "NASA", "Globex", "Istanbul Technical University",
    ),
    "l": (
        "Porto", "Nairobi", "Kyoto", "New York", "Kraków", "Lake Como", "Oaxaca", "Vietnam", "San Sebastián",
        "Tbilisi",
        "Marrakesh", "Cape Town", "Galway", "The Hague", "Mount Fuji", "Queensland",
    ),
    "j": (
        "Project Aurora", "the Atlas project", "the Lighthouse initiative", "Project Kingfisher",
        "the Phoenix migration",
        "Operation Sandstorm",
    ),
    "r": (
        "PostgreSQL", "iPhone 15", "Kubernetes", "Ibuprofen", "Rust", "TensorFlow", "Redis", "GraphQL", "Grafana",
        "Photoshop",
    ),
    "e": (
        "PyCon 2024", "the Berlin Marathon", "the Cannes Film Festival", "the Olympics", "Web Summit",
        "the Harvest Festival",
    ),
}  # fmt: skip
TEST: dict[str, tuple[str, ...]] = {
    "p": (
        "Hannah Weiss", "Takeshi Morimoto", "Agnieszka Wiśniewska", "Emeka Nwosu", "Layla Haddad", "Arjun Venkatesan",
        "Camille Lefèvre", "Björn Lindqvist", "Temitope Balogun", "José Luis Hernández", "Xiaoming Li",
        "Eleni Georgiou",
        "Andriy Kovalenko", "Nomvula Dlamini", "Emre Yıldız", "Declan Murphy", "Beatriz Carvalho", "Seo-yeon Kim",
    ),
    "f": (
        "Clara", "Mateus", "Khadija", "Yuki", "Dmitri", "Abena", "Lucía", "Ananya", "Chloé", "Ayşe", "Sipho",
        "Niamh", "Linh",
        "Katarzyna", "Tariq", "Astrid",
    ),
    "o": (
        "Bosch", "Initech", "University of Cape Coast", "Sturmfels AG", "Infosys", "UNICEF", "Silver Pine Studios",
        "Vantage Analytics",
        "Mercy Hospital", "Banco do Sul", "Oslo Symphony", "Golden Spoon Café", "Zephyr Robotics", "CERN",
        "Umbrella Holdings",
        "Kyushu Institute of Technology",
    ),
    "l": (
        "Lisbon", "Kampala", "Osaka", "Los Angeles", "Gdańsk", "Lake Victoria", "Guadalajara", "Ghana", "Bilbao",
        "Yerevan", "Fez",
        "Durban", "Cork", "São Paulo", "Mount Kenya", "Ontario",
    ),
    "j": (
        "Project Mercury", "the Compass project", "the Evergreen initiative", "Project Nightingale",
        "the Orion rewrite",
        "Operation Bluebird",
    ),
    "r": (
        "MongoDB", "Galaxy S23", "Terraform", "Aspirin", "Kotlin", "PyTorch", "Kafka", "OpenTelemetry",
        "Prometheus", "Lightroom",
    ),
    "e": (
        "EuroPython 2023", "the Boston Marathon", "the Venice Biennale", "the World Cup", "FOSDEM",
        "the Lantern Festival",
    ),
}  # fmt: skip
# Books and films, for templates of the arts that ask for a product.
WORKS = {
    "dev": ("The Silent Orchard", "Night Train"),
    "test": ("Winter Harbor", "The Glass Garden", "Midnight Letters"),
}
SPEAKER = {"dev": "Nadia Petrova", "test": "Rosa Jimenez"}
